//! How promptly a sender's kernel sends a segment that an ACK freed, seen beside the sender. The time is about that of
//! its handshakes, which involve no program.
//!
//! Rival: a relay whose own server waits for a held ACK too, on a connection that the capture lacks. If one tick ends
//! both holds, the relay's bytes leave just after the client's ACK. But its program has to be woken up and to write
//! first.

use super::path::{BestRtts, KernelLimits};
use crate::evidence::rtt::Rtt;
use crate::limits::{AT_HOST_NS, CLEAR_RATIO, COLD_NS, KERNEL_NS, LONGER_TIMES, OUTLIER_ONE_IN};

/// Returns upper bounds on a release. `jitter_ns` is the variation of the kernel's own answers.
pub(super) fn limits(
    [to_sender, to_receiver]: [Option<&Rtt>; 2],
    jitter_ns: i64,
    best: BestRtts,
) -> KernelLimits {
    let both = |limit_ns| KernelLimits {
        prompt_ns: limit_ns,
        slow_ns: limit_ns,
    };
    if best.sender_ns as f64 >= LONGER_TIMES.get() * best.receiver_ns.max(1) as f64 {
        // the capture is beside the receiver: more than the sender's kernel lies between
        return both(i64::MAX);
    }
    if to_receiver
        .is_some_and(|rtt| rtt.jitter_within_kind() >= OUTLIER_ONE_IN.get() as i64 * KERNEL_NS.get())
    {
        // the ACKs arrive at times that no relay can know, so following them at all excludes a relay
        return both(KERNEL_NS.get().max(jitter_ns));
    }
    let handshake_ns = to_sender.and_then(Rtt::kernel_took).unwrap_or(0);
    let cold_ns = COLD_NS.get().max(handshake_ns.saturating_mul(CLEAR_RATIO.get()));
    let prompt_ns = (cold_ns - best.sender_ns).max(jitter_ns);
    KernelLimits {
        prompt_ns,
        slow_ns: prompt_ns.max(AT_HOST_NS.get()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::evidence::rtt::Pairs;

    const US: i64 = 1_000;

    /// The limits beside a kernel whose ACKs take 16 us.
    fn limits_of(handshake: Option<i64>, receiver: i64) -> [i64; 2] {
        wavering(handshake, 0, receiver)
    }

    fn beside(receiver_ns: i64) -> BestRtts {
        BestRtts {
            sender_ns: 16 * US,
            receiver_ns,
        }
    }

    fn in_order(limits: KernelLimits) -> [i64; 2] {
        [limits.prompt_ns, limits.slow_ns]
    }

    fn wavering(handshake: Option<i64>, jitter: i64, receiver: i64) -> [i64; 2] {
        let mut pairs = Pairs::default();
        let [client, server] = [1, 2].map(|last| [10, 0, 0, last].into());
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server, 16 * US, false);
        if let Some(took) = handshake {
            pairs.add_handshake_rtt(pair, Side::Server, took);
        }
        let path = pairs.get(pair).and_then(|pair| pair.rtts.last());
        in_order(limits([path, None], jitter, beside(receiver)))
    }

    #[test]
    fn a_kernel_frees_as_promptly_as_it_shakes_hands() {
        let far = 4_000 * US;
        assert_eq!(limits_of(Some(30 * US), far), [44 * US, 70 * US], "CLEAR_RATIO");
        assert_eq!(limits_of(Some(50 * US), far), [84 * US; 2], "CLEAR_RATIO");
        assert_eq!(limits_of(Some(20 * US), far), [24 * US, 70 * US]);
        assert_eq!(limits_of(Some(17 * US), far), [24 * US, 70 * US], "COLD_NS");
        assert_eq!(limits_of(None, far), [24 * US, 70 * US], "COLD_NS");
        assert_eq!(wavering(None, 24 * US, far), [24 * US, 70 * US]);
        assert_eq!(
            wavering(None, 80 * US, far),
            [80 * US; 2],
            "as its own ACKs differ"
        );
    }

    #[test]
    fn no_relay_follows_acks_whose_way_wavers_by_far_more_than_a_kernel_needs() {
        let limits = |wavers, jitter| {
            let mut to_receiver = Rtt::default();
            for late in [0, wavers, wavers] {
                to_receiver.add(4_000 * US + late, false);
            }
            in_order(limits([None, Some(&to_receiver)], jitter, beside(4_000 * US)))
        };
        assert_eq!(limits(1_000 * US, 0), [100 * US; 2], "OUTLIER_ONE_IN, KERNEL_NS");
        assert_eq!(limits(1_000 * US, 150 * US), [150 * US; 2]);
        assert_eq!(limits(999 * US, 0), [24 * US, 70 * US]);
    }

    #[test]
    fn beside_the_receiver_nothing_is_known_of_the_senders_kernel() {
        let nearest = 16 * US * 2 / 3;
        assert_eq!(limits_of(Some(17 * US), nearest), [i64::MAX; 2], "LONGER_TIMES");
        assert_eq!(limits_of(Some(17 * US), 0), [i64::MAX; 2]);
        assert_eq!(limits_of(Some(17 * US), nearest + 1), [24 * US, 70 * US]);
    }
}
