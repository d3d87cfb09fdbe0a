//! The attributes of congestion control, which keeps one window per QP group.

use super::factor::{AnyFactor, Factor};
use super::kind::{AnyRate, AnyShare, Flag, Time, Whole};
use super::nic::NicAttributes;
use super::table::{Attribute, Field, Group, attribute};
use crate::time::Duration;
use crate::units::{Rate, Share};

/// How a congestion window starts and moves. `Default` is the reference profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionAttributes {
    /// NSCC moves the window; else it stays at its maximum and still limits.
    pub nscc_enable: bool,
    /// The window is computed but holds nothing back.
    pub pass_through: bool,
    /// The largest window is `max_window_packets`, not 1.5 bandwidth-delay products.
    pub override_max_window: bool,
    /// The largest window in units of a nominal packet, MSS + 60 bytes.
    pub max_window_packets: u32,
    /// The target is `target_queue_delay`, not a share of ConfigBaseRTT.
    pub override_target_queue_delay: bool,
    /// The queueing delay that is aimed at.
    pub target_queue_delay: Duration,
    /// A queueing delay below this is as good as none.
    pub target_queue_delay_margin: Duration,
    /// The link rate of the network that the multipliers are made for.
    pub reference_rate: Rate,
    /// The round trip of that network.
    pub reference_rtt: Duration,
    /// Scales the proportional increase.
    pub alpha_multiplier: Factor,
    /// Scales the fair increase, in nominal packets.
    pub fair_increase_multiplier: Factor,
    /// Scales the fast increase.
    pub fast_increase_multiplier: Factor,
    /// Scales the increase of every round trip, in nominal packets.
    pub eta_multiplier: Factor,
    /// How hard a decrease is.
    pub gamma: Share,
    /// What a decrease leaves of the window at least.
    pub max_decrease_jump: Share,
    /// The weight of a new sample in the average queueing delay.
    pub delay_alpha: Share,
    /// Quick adapt needs less delivered than the largest window / 2^this.
    pub quick_adapt_gate: u32,
    /// Without trimming, an average queueing delay above this starts quick adapt.
    pub quick_adapt_threshold: Duration,
    /// How much shorter a round trip must be to change the base RTT.
    pub base_rtt_margin: Duration,
    /// The largest window stays as configured when the base RTT falls.
    pub keep_configured_max_window: bool,
}

impl Default for CongestionAttributes {
    // spec: CC-2, CC-3, CC-4, CC-9
    fn default() -> Self {
        Self {
            nscc_enable: true,
            pass_through: false,
            override_max_window: false,
            max_window_packets: 108,
            override_target_queue_delay: false,
            target_queue_delay: Duration::from_ns(4_500),
            target_queue_delay_margin: Duration::from_us(1),
            reference_rate: Rate::gbps(400),
            reference_rtt: Duration::from_us(6),
            alpha_multiplier: Factor::from_ppm(4_000_000),
            fair_increase_multiplier: Factor::from_ppm(5_000_000),
            fast_increase_multiplier: Factor::from_ppm(1_000_000),
            eta_multiplier: Factor::from_ppm(150_000),
            gamma: Share::from_ppm(800_000),
            max_decrease_jump: Share::from_ppm(500_000),
            delay_alpha: Share::from_ppm(250_000),
            quick_adapt_gate: 3,
            quick_adapt_threshold: Duration::from_us(24),
            base_rtt_margin: Duration::from_us(1),
            keep_configured_max_window: false,
        }
    }
}

macro_rules! nic {
    ($($attribute:tt)*) => { attribute!(NicAttributes, $($attribute)*) };
}

const SPAN: Time = Time { min: Duration::ZERO, max: Duration::from_secs(1) };

// spec: CC-2, CC-3, CC-4, CC-9, CC-10
pub(super) const CONGESTION: Group<NicAttributes> = Group {
    name: "Congestion control",
    attributes: &[
        nic!(
            "NSCCEnable",
            Flag,
            congestion.nscc_enable,
            "NSCC moves the congestion window; false: it stays at its maximum and still limits."
        ),
        nic!(
            "PassThrough",
            Flag,
            congestion.pass_through,
            "The congestion window is computed but holds nothing back."
        ),
        nic!(
            "OverrideMaxCongestionWindow",
            Flag,
            congestion.override_max_window,
            "The largest window is MaxCongestionWindow, not 1.5 bandwidth-delay products."
        ),
        nic!(
            "MaxCongestionWindow",
            Whole { min: 1, max: 1_000_000 },
            congestion.max_window_packets,
            "The largest window where it is overridden, in units of MSS + 60 bytes."
        ),
        nic!(
            "OverrideTargetQueueDelay",
            Flag,
            congestion.override_target_queue_delay,
            "The target is TargetQueueDelay; false: 0.75 ConfigBaseRTT with TrimmingEnabled, else ConfigBaseRTT."
        ),
        nic!(
            "TargetQueueDelay",
            SPAN,
            congestion.target_queue_delay,
            "The queueing delay that is aimed at where it is overridden."
        ),
        nic!(
            "TargetQueueDelayMargin",
            SPAN,
            congestion.target_queue_delay_margin,
            "A queueing delay below this is as good as none: the window may grow fast."
        ),
        nic!(
            "ReferenceNetworkLinkSpeed",
            AnyRate,
            congestion.reference_rate,
            "The link rate of the network that the multipliers are made for."
        ),
        nic!(
            "ReferenceNetworkRTT",
            SPAN,
            congestion.reference_rtt,
            "The round trip of the network that the multipliers are made for."
        ),
        nic!(
            "AlphaMultiplier",
            AnyFactor,
            congestion.alpha_multiplier,
            "Scales the increase in proportion to how far the delay is below its target."
        ),
        nic!(
            "FairIncreaseMultiplier",
            AnyFactor,
            congestion.fair_increase_multiplier,
            "Scales the increase on delay above the target without a mark."
        ),
        nic!(
            "FastIncreaseMultiplier",
            AnyFactor,
            congestion.fast_increase_multiplier,
            "Scales the increase after a whole window without delay."
        ),
        nic!(
            "EtaMultiplier",
            AnyFactor,
            congestion.eta_multiplier,
            "Scales the increase of every round trip."
        ),
        nic!("Gamma", AnyShare, congestion.gamma, "Scales the decrease on marks and delay."),
        nic!(
            "MaxMultiplicativeDecreaseJump",
            AnyShare,
            congestion.max_decrease_jump,
            "The share of the window that a decrease leaves at least."
        ),
        nic!(
            "DelayAlpha",
            AnyShare,
            congestion.delay_alpha,
            "The weight of a new sample in the average queueing delay."
        ),
        nic!(
            "QuickAdaptGate",
            Whole { min: 0, max: 32 },
            congestion.quick_adapt_gate,
            "Quick adapt acts when less than the largest window / 2^this was delivered."
        ),
        nic!(
            "QuickAdaptThreshold",
            SPAN,
            congestion.quick_adapt_threshold,
            "Without trimming, an average queueing delay above this starts quick adapt."
        ),
        nic!(
            "BaseRttMargin",
            SPAN,
            congestion.base_rtt_margin,
            "How much shorter than the base RTT a round trip must be to lower it."
        ),
        nic!(
            "KeepConfiguredMaxWindow",
            Flag,
            congestion.keep_configured_max_window,
            "The largest window stays as configured when the base RTT falls."
        ),
    ],
};
