//! How promptly a sender's kernel sends a segment that an ACK freed, seen beside the sender. The time is about that of
//! its handshakes, which involve no program.
//!
//! Rival: a relay whose own server waits for a held ACK too, on a connection that the capture lacks. If one tick ends
//! both holds, the relay's bytes leave just behind the client's ACK. But its program has to be woken up and to write
//! first.

use crate::evidence::rtt::Rtt;
use crate::limits::{AT_HOST_NS, CLEAR_RATIO, COLD_NS, KERNEL_NS, LONGER_TIMES, OUTLIER_ONE_IN};

/// Returns two upper bounds on a release, beyond the round trip to the sender: within the first leaves most of what its
/// kernel sends, within the second what a slow kernel or a quick relay sends. `jitter` is the variation of the kernel's
/// own answers; `sender` and `receiver` are the best round trips.
pub(super) fn limits(
    [path, to_receiver]: [Option<&Rtt>; 2],
    jitter: i64,
    [sender, receiver]: [i64; 2],
) -> [i64; 2] {
    if sender as f64 >= LONGER_TIMES.get() * receiver.max(1) as f64 {
        // the capture is beside the receiver: more than the sender's kernel lies between
        return [i64::MAX; 2];
    }
    if to_receiver
        .is_some_and(|rtt| rtt.jitter_within_kind() >= OUTLIER_ONE_IN.get() as i64 * KERNEL_NS.get())
    {
        // the ACKs arrive at times that no relay can know, so following them at all excludes a relay
        return [KERNEL_NS.get().max(jitter); 2];
    }
    let handshake = path.and_then(Rtt::kernel_took).unwrap_or(0);
    let prompt = (COLD_NS.get().max(handshake.saturating_mul(CLEAR_RATIO.get())) - sender).max(jitter);
    [prompt, prompt.max(AT_HOST_NS.get())]
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

    fn wavering(handshake: Option<i64>, jitter: i64, receiver: i64) -> [i64; 2] {
        let mut pairs = Pairs::default();
        let [client, server] = [1, 2].map(|last| [10, 0, 0, last].into());
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server, 16 * US, false);
        if let Some(took) = handshake {
            pairs.add_handshake_rtt(pair, Side::Server, took);
        }
        let path = pairs.get(pair).and_then(|pair| pair.rtts.last());
        limits([path, None], jitter, [16 * US, receiver])
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
            limits([None, Some(&to_receiver)], jitter, [16 * US, 4_000 * US])
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
