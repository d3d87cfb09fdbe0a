//! Frame buffers that are used again.

/// One Ethernet frame without its FCS.
pub type Frame = Vec<u8>;

/// Empty buffers kept for the next frames, so that a running node allocates none.
#[derive(Debug, Default)]
pub struct FramePool {
    free: Vec<Frame>,
}

impl FramePool {
    /// Buffers kept at most; more are given back to the allocator.
    const KEPT: usize = 8_192;
    /// Bytes reserved in a new buffer: a full packet at an MSS of 4096.
    const CAPACITY: usize = 4_224;

    /// An empty buffer.
    pub fn take(&mut self) -> Frame {
        self.free.pop().unwrap_or_else(|| Frame::with_capacity(Self::CAPACITY))
    }

    /// A buffer that holds a copy of `bytes`.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Frame {
        let mut frame = self.take();
        frame.extend_from_slice(bytes);
        frame
    }

    /// Takes a buffer back.
    pub fn give(&mut self, mut frame: Frame) {
        if self.free.len() < Self::KEPT {
            frame.clear();
            self.free.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_empty_and_keeps_its_memory() {
        let mut pool = FramePool::default();
        let frame = pool.copy_of(&[7; 100]);
        let memory = frame.as_ptr();
        pool.give(frame);
        let again = pool.take();
        assert!(again.is_empty());
        assert_eq!(again.as_ptr(), memory);
    }
}
