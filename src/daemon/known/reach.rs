//! Whether a tap could reach this machine.

use crate::feishu::link::Phase;
use crate::text::Text;

/// Why no tap could reach us for as long as nobody does anything.
pub(crate) fn shut_out(phase: &Phase) -> Option<Text> {
    match phase {
        Phase::Degraded { .. } => not_connected(phase),
        Phase::Up { .. } | Phase::Dialing { .. } | Phase::Waiting { .. } => None,
    }
}

/// Why no tap can reach us now; `None` while the connection stands.
pub(crate) fn not_connected(phase: &Phase) -> Option<Text> {
    let why = match phase {
        Phase::Up { .. } => return None,
        Phase::Dialing { why: None } => {
            return Some(Text::new(
                "nod 正在连接飞书",
                "nod is still connecting to Feishu",
            ));
        }
        Phase::Dialing { why: Some(why) }
        | Phase::Waiting { why, .. }
        | Phase::Degraded { why, .. } => why,
    };
    Some(Text::made(
        format!("nod 未连接飞书：{}", why.zh),
        format!("nod is not connected to Feishu: {}", why.en),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHY: Text = Text::new("线断了", "the line is cut");

    fn phases() -> [Phase; 4] {
        let until = std::time::Instant::now();
        [
            Phase::Dialing { why: None },
            Phase::Dialing { why: Some(WHY) },
            Phase::Waiting { until, why: WHY },
            Phase::Degraded { until, why: WHY },
        ]
    }

    #[test]
    fn only_what_a_person_must_change_shuts_out() {
        let shut: Vec<bool> = phases().iter().map(|it| shut_out(it).is_some()).collect();
        assert_eq!(shut, [false, false, false, true]);
    }

    #[test]
    fn the_reason_is_told_where_there_is_one() {
        let told: Vec<_> = phases().iter().filter_map(not_connected).collect();
        assert_eq!(told.len(), 4);
        assert!(
            told[1..]
                .iter()
                .all(|text| text.en.ends_with("the line is cut"))
        );
        assert_eq!(told[0].en, "nod is still connecting to Feishu");
    }
}
