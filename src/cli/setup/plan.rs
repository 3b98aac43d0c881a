//! What of the set-up is done and what comes next, from what was found. Pure:
//! a set-up that was broken off goes on where the facts say.

/// One part of the set-up, in the order they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum SetupStep {
    /// Make or name the app.
    App,
    /// Prove that its id and secret work.
    Check,
    /// Learn who decides.
    Owner,
    /// Write the settings file.
    Save,
    /// Prove a tap, before a service takes the connection.
    TestCard,
    /// Tell Claude Code to call nod.
    Hooks,
    /// Have Claude Code ask.
    Mode,
    /// Keep the daemon running: as a service, or in the background.
    Service,
    /// See Claude Code ask.
    Trial,
}

impl SetupStep {
    pub(super) const ALL: [Self; 9] = [
        Self::App,
        Self::Check,
        Self::Owner,
        Self::Save,
        Self::TestCard,
        Self::Hooks,
        Self::Mode,
        Self::Service,
        Self::Trial,
    ];

    /// Those of a team's machine: the gateways have the app.
    const OF_A_MEMBER: [Self; 4] = [Self::Hooks, Self::Mode, Self::Service, Self::Trial];

    /// All that count here.
    pub(super) const fn all(is_member: bool) -> &'static [Self] {
        if is_member {
            &Self::OF_A_MEMBER
        } else {
            &Self::ALL
        }
    }

    /// Which one it is of all, such as `2/9`.
    pub(super) fn place(self, is_member: bool) -> String {
        let all = Self::all(is_member);
        let at = all.iter().position(|step| *step == self);
        format!("{}/{}", at.unwrap_or_default() + 1, all.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepStatus {
    Done,
    Open,
    /// Not wanted, or not possible here.
    Left,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing found")]
pub(super) struct SetupFacts {
    /// A pass of a team's is here, which stands for the app.
    pub(super) is_member: bool,
    pub(super) has_app: bool,
    pub(super) app_works: bool,
    pub(super) has_owner: bool,
    /// The settings file holds the app and the owner.
    pub(super) saved: bool,
    pub(super) tapped: bool,
    pub(super) hooks_installed: bool,
    pub(super) claude_asks: bool,
    pub(super) service_installed: bool,
    /// A daemon holds the app's connection, and would get the tap.
    pub(super) daemon_runs: bool,
    /// There is a service manager.
    pub(super) can_serve: bool,
    /// Somebody could agree to spend tokens.
    pub(super) can_ask: bool,
    /// Claude Code is here.
    pub(super) has_claude: bool,
    pub(super) tried: bool,
}

/// What the person wants beyond the necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing to want")]
pub(super) struct SetupWishes {
    pub(super) test_card: bool,
    pub(super) hooks: bool,
    pub(super) mode: bool,
    pub(super) service: bool,
    pub(super) trial: bool,
}

pub(super) fn status(step: SetupStep, facts: &SetupFacts, wishes: SetupWishes) -> StepStatus {
    let runs = facts.service_installed || facts.daemon_runs;
    let (done, possible) = match step {
        SetupStep::App => (facts.has_app, true),
        SetupStep::Check => (facts.app_works, true),
        SetupStep::Owner => (facts.has_owner, true),
        SetupStep::Save => (facts.saved, true),
        SetupStep::TestCard => (facts.tapped, wishes.test_card && !facts.daemon_runs),
        SetupStep::Hooks => (facts.hooks_installed, wishes.hooks),
        SetupStep::Mode => (facts.claude_asks, wishes.mode),
        SetupStep::Service => (
            facts.service_installed || (!facts.can_serve && facts.daemon_runs),
            // Without a manager, one in the background will do.
            wishes.service,
        ),
        // Tokens are spent only where somebody can be asked first.
        SetupStep::Trial => (
            facts.tried,
            wishes.trial && facts.can_ask && facts.has_claude && facts.hooks_installed && runs,
        ),
    };
    match (done, possible) {
        (true, _) => StepStatus::Done,
        (false, true) => StepStatus::Open,
        (false, false) => StepStatus::Left,
    }
}

/// The first step that is open.
pub(super) fn next(facts: &SetupFacts, wishes: SetupWishes) -> Option<SetupStep> {
    let mut steps = SetupStep::all(facts.is_member).iter().copied();
    steps.find(|step| status(*step, facts, wishes) == StepStatus::Open)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SetupWishes = SetupWishes {
        test_card: true,
        hooks: true,
        mode: true,
        service: true,
        trial: true,
    };

    fn do_step(facts: &mut SetupFacts, step: SetupStep) {
        match step {
            SetupStep::App => facts.has_app = true,
            SetupStep::Check => facts.app_works = true,
            SetupStep::Owner => facts.has_owner = true,
            SetupStep::Save => facts.saved = true,
            SetupStep::TestCard => facts.tapped = true,
            SetupStep::Hooks => facts.hooks_installed = true,
            SetupStep::Mode => facts.claude_asks = true,
            SetupStep::Service => facts.service_installed = true,
            SetupStep::Trial => facts.tried = true,
        }
    }

    fn walk(mut facts: SetupFacts, wishes: SetupWishes) -> Vec<SetupStep> {
        std::iter::from_fn(|| {
            let step = next(&facts, wishes)?;
            do_step(&mut facts, step);
            Some(step)
        })
        .take(20)
        .collect()
    }

    #[test]
    fn a_fresh_machine_goes_through_every_step_once() {
        let fresh = SetupFacts {
            can_serve: true,
            can_ask: true,
            has_claude: true,
            ..SetupFacts::default()
        };
        assert_eq!(walk(fresh, ALL), SetupStep::ALL);
    }

    #[test]
    fn a_set_up_broken_off_anywhere_goes_on_there() {
        let mut facts = SetupFacts {
            can_serve: true,
            can_ask: true,
            has_claude: true,
            ..SetupFacts::default()
        };
        for (at, step) in SetupStep::ALL.into_iter().enumerate() {
            assert_eq!(walk(facts, ALL), SetupStep::ALL[at..]);
            do_step(&mut facts, step);
        }
        assert_eq!(next(&facts, ALL), None);
    }

    #[test]
    fn a_teams_machine_needs_no_app_and_no_owner() {
        let member = SetupFacts {
            is_member: true,
            can_serve: true,
            can_ask: true,
            has_claude: true,
            ..SetupFacts::default()
        };
        assert_eq!(walk(member, ALL), SetupStep::OF_A_MEMBER);
        assert_eq!(SetupStep::Hooks.place(true), "1/4");
        assert_eq!(SetupStep::Hooks.place(false), "6/9");
    }

    #[test]
    fn what_is_not_wanted_or_not_possible_is_left() {
        let nothing = SetupWishes {
            test_card: false,
            hooks: false,
            mode: false,
            service: false,
            trial: false,
        };
        let needed = [
            SetupStep::App,
            SetupStep::Check,
            SetupStep::Owner,
            SetupStep::Save,
        ];
        assert_eq!(walk(SetupFacts::default(), nothing), needed);
        let container = SetupFacts::default();
        assert_eq!(
            status(SetupStep::Service, &container, nothing),
            StepStatus::Left
        );
        let running = SetupFacts {
            daemon_runs: true,
            ..container
        };
        assert_eq!(status(SetupStep::TestCard, &running, ALL), StepStatus::Left);
        // Without a manager, a daemon in the background will do.
        assert_eq!(
            status(SetupStep::Service, &container, ALL),
            StepStatus::Open
        );
        assert_eq!(status(SetupStep::Service, &running, ALL), StepStatus::Done);
    }

    #[test]
    fn claude_code_is_tried_only_where_somebody_agrees_and_it_would_ask() {
        let ready = SetupFacts {
            can_ask: true,
            has_claude: true,
            hooks_installed: true,
            daemon_runs: true,
            ..SetupFacts::default()
        };
        assert_eq!(status(SetupStep::Trial, &ready, ALL), StepStatus::Open);
        let without: [fn(&mut SetupFacts); 4] = [
            |facts| facts.can_ask = false,
            |facts| facts.has_claude = false,
            |facts| facts.hooks_installed = false,
            |facts| facts.daemon_runs = false,
        ];
        for without in without {
            let mut facts = ready;
            without(&mut facts);
            assert_eq!(status(SetupStep::Trial, &facts, ALL), StepStatus::Left);
        }
    }
}
