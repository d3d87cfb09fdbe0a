//! What a NIC's PCIe link and buffers are made of.

use crate::units::{Rate, Share};

/// One end of the NIC's PCIe link: what it sends with and where it keeps what
/// waits. `Default` is PCIe 5.0 with 16 lanes.
// spec: PB-1, PB-4
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PcieSide {
    /// Lanes that this end sends on.
    pub lane_count: u32,
    /// The rate of each.
    pub lane_rate: Rate,
    /// Payload bytes that may wait to be sent.
    pub tx_data_bytes: u64,
    /// Payload bytes that may wait at the receiver.
    pub rx_data_bytes: u64,
    /// Overhead bytes of transfers that may wait to be sent.
    pub tx_header_bytes: u64,
    /// Overhead bytes of transfers that may wait at the receiver.
    pub rx_header_bytes: u64,
}

impl Default for PcieSide {
    fn default() -> Self {
        Self {
            lane_count: 16,
            lane_rate: Rate::mbps(31_520),
            tx_data_bytes: 256_000,
            rx_data_bytes: 256_000,
            tx_header_bytes: 16_000,
            rx_header_bytes: 16_000,
        }
    }
}

impl PcieSide {
    /// The most payload bytes of one transfer.
    pub const TRANSFER_PAYLOAD: u64 = 512;
    /// Bytes that each transfer has beside its payload.
    pub const TRANSFER_OVERHEAD: u64 = 34;

    /// The overhead, in bytes, of the transfers that move `payload` bytes; no
    /// payload is a transfer too.
    // spec: PB-2
    pub const fn overhead(payload: u64) -> u64 {
        let transfers = payload.div_ceil(Self::TRANSFER_PAYLOAD);
        Self::TRANSFER_OVERHEAD * if transfers == 0 { 1 } else { transfers }
    }

    /// The rate of this end's direction: all its lanes together.
    // spec: PB-1
    pub fn rate(&self) -> Rate {
        self.lane_rate.times(self.lane_count)
    }
}

/// A packet buffer and how it is divided among the NIC's classes.
// spec: PB-8, PB-11
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferAttributes {
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Each class's share; class 0 is data, class 1 control.
    pub shares: Vec<Share>,
}

impl BufferAttributes {
    /// A buffer of `total_bytes`, nine tenths for data and one for control.
    pub fn of(total_bytes: u64) -> Self {
        Self { total_bytes, shares: vec![Share::from_ppm(900_000), Share::from_ppm(100_000)] }
    }

    /// The size of the pool of `class`, in bytes.
    pub fn pool_bytes(&self, class: usize) -> u64 {
        self.shares.get(class).map_or(0, |share| share.of(self.total_bytes))
    }
}

/// When a NIC pauses its peer, and for how long.
// spec: PB-12
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcAttributes {
    /// Whether it does, for each class.
    pub enabled: [bool; 2],
    /// The share of a pool at which a pause frame is sent.
    pub xoff: Share,
    /// The share of a pool at which sending may go on.
    pub xon: Share,
    /// How long a pause frame asks for, in quanta of 512 bit times.
    pub quanta: u16,
}

impl Default for PfcAttributes {
    fn default() -> Self {
        Self {
            enabled: [false; 2],
            xoff: Share::from_ppm(800_000),
            xon: Share::from_ppm(400_000),
            quanta: u16::MAX,
        }
    }
}

/// Which of the NIC's classes sends next when several have packets waiting.
// spec: PB-10
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueScheduling {
    /// The highest class.
    StrictPriority,
    /// One packet of each in turn.
    RoundRobin,
    /// At most so many packets of each in turn.
    WeightedRoundRobin,
}
