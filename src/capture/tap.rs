//! A capture as a tap of a node's ports.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use super::{CaptureFile, CaptureSummary, Direction, InterfaceId};
use crate::node::{FrameTap, PortId, TapDirection};
use crate::time::Instant;

/// A capture with an interface for each port of a node. Clones share the file:
/// one is given to the driver as a tap, another is kept to ask and to finish.
#[derive(Clone, Debug)]
pub struct PortCapture(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    /// `None` once it is finished.
    file: Option<CaptureFile>,
    interfaces: Vec<InterfaceId>,
    packets: u64,
}

impl PortCapture {
    /// A capture into `file`; `ports` names the node's ports in their order.
    // spec: RC-7
    pub fn new<'a>(mut file: CaptureFile, ports: impl IntoIterator<Item = &'a str>) -> Self {
        let interfaces = ports.into_iter().map(|name| file.add_interface(name)).collect();
        Self(Rc::new(RefCell::new(Inner { file: Some(file), interfaces, packets: 0 })))
    }

    /// How many frames it has taken, and how many it had to leave out.
    pub fn counts(&self) -> CaptureSummary {
        let inner = self.0.borrow();
        let dropped = inner.file.as_ref().map_or(0, CaptureFile::dropped);
        CaptureSummary { packets: inner.packets - dropped, dropped }
    }

    /// Writes all that waits and closes the file; nothing is taken after that.
    ///
    /// # Errors
    /// The first error of the file.
    // spec: RC-6
    pub fn finish(&self) -> io::Result<CaptureSummary> {
        match self.0.borrow_mut().file.take() {
            Some(file) => file.finish(),
            None => Ok(CaptureSummary::default()),
        }
    }
}

impl FrameTap for PortCapture {
    fn frame(
        &mut self,
        at: Instant,
        port: PortId,
        direction: TapDirection,
        frame: &[u8],
        comment: Option<&str>,
    ) {
        let mut inner = self.0.borrow_mut();
        let Inner { file: Some(file), interfaces, packets } = &mut *inner else { return };
        let Some(&interface) = interfaces.get(usize::from(port.0)) else { return };
        let direction = match direction {
            TapDirection::Received => Direction::Inbound,
            TapDirection::Sent => Direction::Outbound,
        };
        *packets += 1;
        file.record(interface, at, direction, frame, comment);
    }
}
