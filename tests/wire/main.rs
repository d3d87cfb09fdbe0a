//! The wire format from outside: frames written by hand, properties, and the
//! opinions of other programs.

mod any;
mod golden;
mod golden_tests;
mod hostile;
mod pfc_tests;
mod psn_tests;
mod round_trips;
mod second_opinion;
mod switching;
mod tshark;
