//! Any order of registrations, clicks, waits, losses and restarts, against a
//! reference of one row per request.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Register(usize),
    Click(usize, bool),
    Wait(Millis),
    Expire,
    Ran(usize),
    Turn(usize),
    Gone(usize),
    Resume(usize, bool),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..6_usize;
    prop_oneof![
        3 => n.clone().prop_map(Step::Register),
        3 => (n.clone(), any::<bool>()).prop_map(|(n, allow)| Step::Click(n, allow)),
        2 => (0..TIMEOUT).prop_map(Step::Wait),
        1 => Just(Step::Expire),
        1 => n.clone().prop_map(Step::Ran),
        1 => n.clone().prop_map(Step::Turn),
        1 => n.clone().prop_map(Step::Gone),
        2 => (n, any::<bool>()).prop_map(|(n, right)| Step::Resume(n, right)),
        1 => Just(Step::Restart),
    ]
}

/// The reference: one row per request, one rule per line.
#[derive(Debug, Clone, Default)]
struct Row {
    deadline: Millis,
    /// `None` while a hook is attached.
    away_until: Option<Millis>,
    attachment: Option<Attachment>,
    ending: Option<Ending>,
}

impl Row {
    fn by_clock(&self, now: Millis) -> Option<Ending> {
        let away = self.away_until.unwrap_or(Millis::MAX);
        match (self.deadline <= now, away <= now) {
            (true, _) if self.deadline <= away => Some(Ending::TimedOut),
            (_, true) => Some(Ending::Orphaned),
            _ => None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_interleaving_ends_each_request_once_and_allows_only_by_a_click(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let mut desk = Approvals::new();
        let mut rows: HashMap<usize, Row> = HashMap::new();
        let mut now = T0;
        for step in steps {
            let mut ended: Vec<Settled> = Vec::new();
            match step {
                Step::Register(n) => {
                    let result = desk.register(request(n, n % 2, &format!("c{}", n % 3), now), token(1), now);
                    prop_assert_eq!(result.is_err(), rows.contains_key(&n));
                    if let Ok(attachment) = result {
                        rows.insert(n, Row { deadline: now + TIMEOUT, attachment: Some(attachment), ..Row::default() });
                    }
                }
                Step::Click(n, allows) => {
                    let action = if allows { allow() } else { deny(true) };
                    let result = desk.decide(&id(n), action, person("ou_a"), now);
                    let row = rows.get(&n);
                    let open = row.is_some_and(|r| r.ending.is_none() && r.by_clock(now).is_none());
                    prop_assert_eq!(result.is_ok(), open && row.is_some_and(|r| r.away_until.is_none()));
                    match result {
                        Ok(settled) => {
                            prop_assert_eq!(matches!(settled.ending, Ending::Allowed { .. }), allows);
                            let row = rows.get_mut(&n).unwrap();
                            prop_assert!(row.ending.replace(settled.ending).is_none());
                        }
                        Err(Unclaimed::Unknown) => prop_assert!(row.is_none()),
                        Err(Unclaimed::Reconnecting) => prop_assert!(open),
                        Err(Unclaimed::Settled { ending, .. }) => {
                            let row = row.unwrap();
                            prop_assert_eq!(Some(ending), row.ending.clone().or(row.by_clock(now)));
                        }
                    }
                }
                Step::Wait(millis) => now += millis,
                Step::Expire => {
                    ended = desk.expire(now);
                    let due = rows.values().filter(|r| r.ending.is_none() && r.by_clock(now).is_some());
                    prop_assert_eq!(ended.len(), due.count());
                }
                Step::Ran(n) => ended = desk.withdraw(&session(n % 2), &ran(&format!("c{}", n % 3)), now),
                Step::Turn(n) => {
                    ended = desk.withdraw(&session(n % 2), &Withdrawal::Turn {
 agent: None,
 process: None,
 }, now);
                    let open = rows.iter().filter(|(m, r)| *m % 2 == n % 2 && r.ending.is_none());
                    prop_assert_eq!(ended.len(), open.count());
                }
                Step::Gone(n) => if let Some(attachment) = rows.get(&n).and_then(|r| r.attachment) {
                    ended.extend(desk.hook_gone(&id(n), attachment, now));
                    let row = &rows[&n];
                    prop_assert_eq!(ended.len(), usize::from(row.ending.is_none() && row.away_until.is_none()));
                },
                Step::Resume(n, right) => {
                    let result = desk.resume(&id(n), token(if right { 1 } else { 2 }));
                    match (result, rows.get_mut(&n)) {
                        (Ok(Resumed::Waiting(attachment, _)), Some(row)) => {
                            prop_assert!(right && row.ending.is_none());
                            row.away_until = None;
                            row.attachment = Some(attachment);
                        }
                        (Ok(Resumed::Ended(past)), Some(row)) => {
                            prop_assert!(right);
                            prop_assert_eq!(Some(past.ending), row.ending.clone());
                        }
                        (Err(ResumeRefusal::WrongToken), Some(_)) => prop_assert!(!right),
                        (Err(ResumeRefusal::Unknown), None) => {}
                        (result, row) => prop_assert!(false, "{:?} for {:?}", result, row),
                    }
                }
                Step::Restart => {
                    let pending: Vec<_> = desk.all_pending().cloned().map(|r| (r, token(1))).collect();
                    let past: Vec<_> = (0..6).filter_map(|n| desk.past(&id(n)).cloned().map(|p| (id(n), p))).collect();
                    desk = Approvals::new();
                    desk.restore(pending, now, GRACE);
                    for (id, past) in past {
                        desk.recall(id, past);
                    }
                    for row in rows.values_mut().filter(|r| r.ending.is_none()) {
                        row.away_until = Some(now + GRACE);
                        row.attachment = None;
                    }
                }
            }
            for untrue in desk.take_corrections() {
                let n = (0..6).find(|n| id(*n) == untrue.id).unwrap();
                let said = rows.get_mut(&n).unwrap().ending.replace(untrue.ending);
                prop_assert!(said.is_some(), "nothing was said of it yet");
            }
            for settled in ended {
                let n = (0..6).find(|n| id(*n) == settled.request.id).unwrap();
                let is_decision = matches!(settled.ending, Ending::Allowed { .. } | Ending::Denied { .. });
                prop_assert!(!is_decision, "{:?} without a click", settled.ending);
                prop_assert!(rows.get_mut(&n).unwrap().ending.replace(settled.ending).is_none(), "a second ending");
            }
            prop_assert_eq!(desk.len(), rows.values().filter(|r| r.ending.is_none()).count());
            prop_assert_eq!(desk.due.len(), desk.len());
        }
    }
}
