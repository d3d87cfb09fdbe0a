//! `[[write]]`: what is sent.

use super::names::Names;
use super::section::{Section, size};
use crate::nic::Nic;
use crate::scenario::Flow;

/// The most bytes of one flow: both ends hold all of them in memory.
const MAX_FLOW: u64 = 1 << 36;
/// The most messages of one flow; each may have a QP of its own.
const MAX_MESSAGES: u64 = 1 << 20;
/// How many messages are posted ahead when the file does not say.
const DEFAULT_DEPTH: u64 = 128;

/// The keys that [`read_properties`] reads.
pub(super) const PROPERTIES: [&str; 5] = ["bytes", "messages", "qp", "depth", "start"];

/// Reads a flow; `None` when one of its ends or its size is not there.
// spec: WL-1
pub(super) fn read(section: &Section<'_>, names: &Names) -> Option<Flow> {
    section.allow_keys(&[&["from", "to"], &PROPERTIES[..]].concat());
    let ends = (names.nic(section, "from"), names.nic(section, "to"));
    let properties = read_properties(section);
    let ((Some(from), Some(to)), Some(properties)) = (ends, properties) else { return None };
    if from == to {
        section.refuse_key("to", "a NIC does not send to itself; name another NIC");
    }
    Some(Flow { from, to, ..properties })
}

/// Reads all of a flow but its ends; `None` when its size is not there.
// spec: WL-1, W-8
pub(super) fn read_properties(section: &Section<'_>) -> Option<Flow> {
    let wanted = "a size of at most 2 GiB, such as \"64 MiB\"";
    let bytes = section.required("bytes", wanted, |value| {
        size(value).filter(|bytes| *bytes <= u64::from(Nic::MAX_MESSAGE))
    });
    let messages = section.whole("messages", 1, MAX_MESSAGES).unwrap_or(1);
    let qp = section.optional("qp", "\"one\" or \"each\"", |value| match value.as_str()? {
        "one" => Some(true),
        "each" => Some(false),
        _ => None,
    });
    let depth = section.whole("depth", 1, MAX_MESSAGES).unwrap_or(DEFAULT_DEPTH);
    let start = section.time("start").unwrap_or_default();
    let bytes = bytes?;
    if let Err(error) = check_size(bytes, messages) {
        section.refuse(&error);
    }
    let (messages, depth) = (messages as u32, depth as u32);
    let one_qp = qp.unwrap_or(false);
    Some(Flow { from: 0, to: 0, bytes: bytes as u32, messages, one_qp, depth, start })
}

/// Refuses a flow of more than both ends can hold.
pub(super) fn check_size(bytes: u64, messages: u64) -> Result<(), String> {
    if bytes * messages <= MAX_FLOW {
        return Ok(());
    }
    Err(format!(
        "{messages} messages of {bytes} bytes are more than the {MAX_FLOW} bytes of one flow; send fewer or smaller ones"
    ))
}
