//! What rows of each rule and grade are worth: the share of their milliseconds that is right on labelled captures.

use super::vocabulary::{Grade, Rule};

/// By grade (proven, probable, suspected, unknown). A rule that is not named has few labelled rows, or the share of
/// most.
pub fn worth(rule: Rule) -> &'static [f64; Grade::COUNT] {
    match rule {
        Rule::NagleDelayedAck | Rule::NagleWait | Rule::NaglePiggyback | Rule::NagleFinRelease => {
            &[0.99, 0.80, 0.50, 0.0]
        }
        Rule::Window | Rule::HandshakeRepeated => &[0.95, 0.70, 0.50, 0.0],
        Rule::LookAlike => &[0.95, 0.60, 0.50, 0.0],
        Rule::Burst
        | Rule::CwndDelayedAck
        | Rule::Overtaken
        | Rule::TailProbe
        | Rule::Timeout
        | Rule::HoleFilled
        | Rule::Timestamps => &[0.90, 0.80, 0.50, 0.0],
        Rule::Handshake | Rule::CorkPool => &[0.90, 0.60, 0.50, 0.0],
        _ => &[0.90, 0.70, 0.50, 0.0],
    }
}
