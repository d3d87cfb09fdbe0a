//! `mrc run` as its users run it: the real binary, real namespaces, as root and
//! as an ordinary user. What a test needs and does not find, it names and fails.

mod bench;
mod demo;
mod ends;
mod fabric;
mod forge;
mod input;
mod live;
mod programs;
mod second_opinion;
mod standing;
