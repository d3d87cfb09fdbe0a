//! A pause between a lab that stands and the first packet.

use std::io::{self, BufRead};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::notice::notice;

/// Waits until Enter is pressed, standard input ends, or `stopped` is set.
pub fn hold(stopped: &AtomicBool) {
    const LOOK_AGAIN: Duration = Duration::from_millis(50);
    notice(format_args!(
        "holding: the lab of process {} stands; press Enter to send",
        process::id()
    ));
    let (sender, entered) = mpsc::channel();
    // A read cannot be given up, so that its thread may outlive the wait.
    thread::spawn(move || {
        // An input that cannot be read has ended; nobody may wait any more.
        let _ = io::stdin().lock().skip_until(b'\n');
        let _ = sender.send(());
    });
    while !stopped.load(Ordering::Acquire)
        && entered.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout)
    {}
}
