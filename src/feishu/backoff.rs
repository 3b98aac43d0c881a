//! How long to wait before the next dial. Feishu's own clients wait a random
//! 0 to 30 seconds and then two minutes a try; a person holding a phone does
//! not, so the first redial here is immediate.

use std::time::Duration;

/// The last one, with its spread, is [`LONGEST`].
const STEPS_MS: [u64; 6] = [500, 1_000, 2_000, 5_000, 10_000, 12_500];

/// No pause is longer, whatever happened before: who taps or writes while the
/// network is back waits for no more than this.
pub const LONGEST: Duration = Duration::from_secs(15);

/// The spread of the first redial, so that a fleet does not return as one.
const FIRST: Duration = Duration::from_millis(250);

/// The delay after `failures` failed dials in a row. `roll` is a random number
/// from 0 to 1; `ceiling` is the longest wait the server asks for.
pub fn delay(failures: u32, ceiling: Duration, roll: f64) -> Duration {
    let roll = roll.clamp(0.0, 1.0);
    if failures == 0 {
        return FIRST.mul_f64(roll);
    }
    let step = usize::try_from(failures - 1)
        .unwrap_or(usize::MAX)
        .min(STEPS_MS.len() - 1);
    Duration::from_millis(STEPS_MS[step])
        .min(ceiling)
        .mul_f64(0.8 + 0.4 * roll)
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn the_first_redial_is_within_a_quarter_of_a_second() {
        assert_eq!(delay(0, HOUR, 0.0), Duration::ZERO);
        assert_eq!(delay(0, HOUR, 1.0), Duration::from_millis(250));
    }

    #[test]
    fn waits_grow_to_fifteen_seconds_and_spread_by_a_fifth() {
        assert_eq!(delay(1_000, HOUR, 1.0), LONGEST);
        for (failures, seconds) in [(1, 0.5), (2, 1.0), (4, 5.0), (6, 12.5), (1_000, 12.5)] {
            assert_eq!(
                delay(failures, HOUR, 0.0),
                Duration::from_secs_f64(seconds * 0.8)
            );
            assert_eq!(
                delay(failures, HOUR, 1.0),
                Duration::from_secs_f64(seconds * 1.2)
            );
        }
    }

    #[test]
    fn the_servers_ceiling_shortens_the_wait() {
        let ceiling = Duration::from_secs(3);
        assert_eq!(delay(7, ceiling, 0.5), ceiling);
    }

    #[test]
    fn a_bad_roll_is_clamped() {
        assert_eq!(delay(0, HOUR, 9.0), Duration::from_millis(250));
        assert_eq!(delay(1, HOUR, -9.0), Duration::from_millis(400));
    }
}
