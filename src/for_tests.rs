//! The one door of the library, for our own tests, benches and fuzz targets:
//! what they use of the rooms, and nothing else. It promises no API.

pub mod approvals {
    pub use crate::approvals::{Approvals, Attachment, Past, Resumed, Settled, Unclaimed};
    pub mod choice {
        pub use crate::approvals::choice::Choice;
    }
    pub mod outcome {
        pub use crate::approvals::outcome::{Outcome, Refusal, Upshot};
    }
    pub mod request {
        pub use crate::approvals::request::{
            AskingAgent, Caller, Digest, Dropped, Ending, Facts, Operator, Origin, Ran, Reach,
            RealPath, Request, UntrueEnding,
        };
    }
    pub mod token {
        pub use crate::approvals::token::{Token, TokenHash};
    }
}
pub mod bus {
    pub mod conf {
        pub use crate::bus::conf::text;
    }
    pub mod errand {
        pub use crate::bus::errand::{ErrandCall, ErrandResult};
    }
    pub mod keys {
        pub use crate::bus::keys::Keys;
    }
    pub mod letter {
        pub use crate::bus::letter::{AnswerHead, CallHead, Letter, PushHead, sign};
    }
    #[cfg(feature = "team")]
    pub mod line {
        pub use crate::bus::line::{
            BusAnswer, BusHeard, BusLine, BusLineState, BusUser, LineTurns, run,
        };
    }
    pub mod lobby {
        pub use crate::bus::lobby::{Invite, Invited, JoinWish, ticket};
    }
    pub mod membership {
        pub use crate::bus::membership::{Grant, Membership};
    }
    pub mod nkey {
        pub use crate::bus::nkey::{KeyKind, KeyPair};
    }
    pub mod pass {
        pub use crate::bus::pass::{Pass, Span, gateway, lobby, machine};
    }
    pub mod subjects {
        pub use crate::bus::subjects::{
            FromMachine, MachinePlace, Owner, ToMachine, lobby, lobby_inbox, of_owner,
        };
    }
    pub mod url {
        pub use crate::bus::url::BusUrl;
    }
}
pub mod cards {
    pub use crate::cards::{Action, MAX_CARD};
    pub mod choice {
        pub use crate::cards::choice::{ChoiceButton, ChoiceCard, WORDS_FIELD, made, open};
    }
    pub mod ending {
        pub use crate::cards::ending::{
            Confirmation, ended, kept_title, running, untitled, without_input,
        };
    }
    pub mod linked {
        pub use crate::cards::linked::{MAX_LINKED, announced, waiting};
    }
    pub mod locked {
        pub use crate::cards::locked::locked;
    }
    pub mod markdown {
        pub use crate::cards::markdown::{MarkdownLimits, answer};
    }
    pub mod notice {
        pub use crate::cards::notice::{NoticeCard, Why, notice};
    }
    pub mod permission {
        pub use crate::cards::permission::{choices, minimal, pending};
    }
    pub mod plainest {
        pub use crate::cards::plainest::plainest;
    }
    pub mod progress {
        pub use crate::cards::progress::{Task, TaskEnd, answer, ended, running};
    }
    pub mod question {
        pub use crate::cards::question::pending;
    }
    pub mod sure {
        pub use crate::cards::sure::once_more;
    }
    pub mod whole {
        pub use crate::cards::whole::{Before, MANY, WentOut, cards, text};
    }
}
pub mod child {
    pub mod process {
        pub use crate::child::process::{Grace, Launch};
    }
}
pub mod claude {
    pub mod launch {
        pub use crate::claude::launch::{Permissions, arguments};
    }
    pub mod permission {
        pub use crate::claude::permission::{
            HookEvent, HookInput, PermissionAnswer, PermissionAsk,
        };
    }
    pub mod process {
        pub use crate::claude::process::{ClaudeChild, start};
    }
    pub mod settings_file {
        pub use crate::claude::settings_file::{add_allow_rule, remove_allow_rule};
    }
    pub mod stream {
        pub use crate::claude::stream::parse;
    }
}
pub mod clock {
    pub use crate::clock::{Clock, Millis, wall_ms};
}
pub mod config {
    pub use crate::config::SETTINGS;
}
pub mod daemon {
    pub mod book {
        pub use crate::daemon::book::{
            CardBook, CardEffect, Decided, Face, Found, Keep, KeepOf, Left, LineState, LineView,
            MAX_FACES, OVER_AFTER, Patch, PatchOf, Patched, Sending, Unsent,
        };
    }
}
pub mod feishu {
    pub mod chunks {
        pub use crate::feishu::chunks::{Chunks, Fit};
    }
    pub mod clock {
        pub use crate::feishu::clock::TheirClock;
    }
    pub mod connection {
        pub use crate::feishu::connection::{LinkView, Wiring, first_view, run};
    }
    pub mod domain {
        pub use crate::feishu::domain::Domain;
    }
    pub mod endpoint {
        pub use crate::feishu::endpoint::{DialError, DialLimits, Dialer};
    }
    pub mod event {
        pub use crate::feishu::event::{
            Click, EventHead, Message, MessageBody, Person, Push, parse,
        };
    }
    pub mod frame {
        pub use crate::feishu::frame::{DATA, Frame, Header};
    }
    pub mod link {
        pub use crate::feishu::link::{
            DialRetry, Incoming, Link, LinkStep, Now, Phase, PushAnswer, PushDelivery, PushTicket,
            ServerSettings,
        };
    }
    pub mod outbound {
        pub use crate::feishu::outbound::{Outbound, Proxies};
    }
    pub mod registration {
        pub use crate::feishu::registration::{
            AppRegistration, Brand, Registered, RegistrationError,
        };
    }
    pub mod secret {
        pub use crate::feishu::secret::Secret;
    }
}
pub mod files {
    pub use crate::files::{make_dirs, replace_private};
}
pub mod gateway {
    pub mod call {
        pub use crate::gateway::call::{CallAnswer, PeerCall, Proof, Stamp, TAKE, WHOSE};
    }
    pub mod seal {
        pub use crate::gateway::seal::{SealPurpose, Sealer};
    }
}
pub mod hook {
    pub mod client {
        pub use crate::hook::client::{HookRequest, Patience, ask, order};
    }
    pub mod connect {
        pub use crate::hook::connect::peer_pid;
    }
    pub mod wire {
        pub use crate::hook::wire::{
            Ack, Additions, DaemonOrder, HookMessage, HookNotice, MAX_REPLY, Registration,
            WireError, frame, unframe,
        };
        pub mod answer {
            pub use crate::hook::wire::answer::{Decision, decode};
        }
        pub mod scan {
            pub use crate::hook::wire::scan::Scanner;
        }
    }
}
pub mod ids {
    pub use crate::ids::{CardKey, EventId, MachineId, MessageId, RequestId, SessionId, UserId};
}
pub mod rules {
    pub use crate::rules::{NoRule, PathKind, Rule, offer, offer_here};
}
pub mod sessions {
    pub mod agent {
        pub use crate::sessions::agent::Agent;
    }
    pub mod questions {
        pub use crate::sessions::questions::{QuestionTap, of};
    }
    pub mod state {
        pub use crate::sessions::state::{
            AskEnding, ChildNo, Effect, PersonText, Saved, Session, SessionCommand, SessionInput,
            SessionLimits, SessionStatus, TextFate, Unanswered,
        };
    }
}
pub mod simulator {
    pub use crate::simulator::{
        APP_ID, APP_SECRET, App, Armed, ChatText, ClickOutcome, Clicked, Connection, Fault, Flaw,
        FragmentOrder, Fragments, GROUP, HeldMessage, OWNER, Options, Press, Pushed, SERVICE_ID,
        STRANGER, ScanDecision, ScannerBrand, Simulator, TENANT, WEBHOOK_SECRET, check_card, popup,
    };
    pub mod bus {
        pub use crate::simulator::bus::{Bus, MessageFate};
    }
}
pub mod store {
    pub use crate::store::{Db, Recorded};
}
pub mod talk {
    pub use crate::talk::{
        AgentEvent, AgentSaid, AgentWants, Exit, Mode, Opening, Say, ToolVerdict,
    };
}
pub mod text {
    pub use crate::text::{Lang, Text, Tone};
    pub mod escape {
        pub use crate::text::escape::{Budget, Shape, excerpt, fit, is_plain, visible};
    }
    pub mod secrets {
        pub use crate::text::secrets::masks;
    }
}
pub mod version {
    pub use crate::version::{BUILD, LONG};
}
pub mod wording {
    pub use crate::wording::{Toast, reply_json};
    pub mod rule {
        pub use crate::wording::rule::{Until, sentence};
    }
    pub mod terminal {
        pub use crate::wording::terminal::PROJECT_TITLE;
    }
    pub mod toast {
        pub use crate::wording::toast::Toast;
    }
}
