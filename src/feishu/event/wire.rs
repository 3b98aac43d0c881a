//! The bytes of a push as fields. Whatever kind of JSON stands where a text, an
//! object or a list is expected, the rest is still read.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

type MaybeText<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Wire<'a> {
    #[serde(borrow, deserialize_with = "object")]
    pub(super) header: Option<WireHeader<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) event: Option<WireEvent<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireHeader<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) event_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) event_type: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text_or_number")]
    pub(super) create_time: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) app_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) tenant_key: MaybeText<'a>,
}

/// Both kinds of events; what a kind does not have costs no room.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireEvent<'a> {
    /// Version 1 events name themselves here.
    #[serde(rename = "type", borrow, deserialize_with = "text")]
    pub(super) kind: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) operator: Option<WirePerson<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) action: Option<WireAction<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) context: Option<WireContext<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) open_message_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) open_chat_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) host: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) delivery_type: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) sender: Option<Box<WireSender<'a>>>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) message: Option<Box<WireMessage<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WirePerson<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) open_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) union_id: MaybeText<'a>,
    /// The id within the tenant, or an object with all of them.
    #[serde(borrow, deserialize_with = "text_or_ids")]
    pub(super) user_id: Option<OneOrMore<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) tenant_key: MaybeText<'a>,
}

pub(super) enum OneOrMore<'a> {
    One(Cow<'a, str>),
    More(Ids<'a>),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Ids<'a> {
    #[serde(rename = "open_id", borrow, deserialize_with = "text")]
    pub(super) open: MaybeText<'a>,
    #[serde(rename = "union_id", borrow, deserialize_with = "text")]
    pub(super) union: MaybeText<'a>,
    #[serde(rename = "user_id", borrow, deserialize_with = "text")]
    pub(super) tenant: MaybeText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireAction<'a> {
    pub(super) value: Value,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) name: MaybeText<'a>,
    #[serde(deserialize_with = "object")]
    pub(super) form_value: Option<Map<String, Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireContext<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) open_message_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) open_chat_id: MaybeText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireSender<'a> {
    #[serde(borrow, deserialize_with = "object")]
    pub(super) sender_id: Option<WirePerson<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) sender_type: MaybeText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) message_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) root_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) parent_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) thread_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text_or_number")]
    pub(super) create_time: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) chat_id: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) chat_type: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) message_type: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) content: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "list")]
    pub(super) mentions: Vec<WireMention<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireMention<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub(super) key: MaybeText<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) id: Option<WirePerson<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub(super) name: MaybeText<'a>,
}

fn text<'de, D: Deserializer<'de>>(wire: D) -> Result<MaybeText<'de>, D::Error> {
    wire.deserialize_any(Any(TextField))
}

/// A text, or a number as text.
fn text_or_number<'de, D: Deserializer<'de>>(wire: D) -> Result<MaybeText<'de>, D::Error> {
    wire.deserialize_any(Any(WordsOrNumber))
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(wire: D) -> Result<Option<T>, D::Error> {
    wire.deserialize_any(Any(Object(PhantomData)))
}

fn text_or_ids<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<OneOrMore<'de>>, D::Error> {
    wire.deserialize_any(Any(WordsOrIds))
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(wire: D) -> Result<Vec<T>, D::Error> {
    let found = wire.deserialize_any(Any(List(PhantomData)))?;
    Ok(found.unwrap_or_default())
}

/// What one kind of field takes; everything else is passed over.
trait WantedField<'de>: Sized {
    type Value;

    fn words(self, _: Cow<'de, str>) -> Option<Self::Value> {
        None
    }

    fn number(self, _: &dyn fmt::Display) -> Option<Self::Value> {
        None
    }

    fn map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Self::Value>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Self::Value>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

struct TextField;

impl<'de> WantedField<'de> for TextField {
    type Value = Cow<'de, str>;

    fn words(self, text: Cow<'de, str>) -> Option<Self::Value> {
        Some(text)
    }
}

struct WordsOrNumber;

impl<'de> WantedField<'de> for WordsOrNumber {
    type Value = Cow<'de, str>;

    fn words(self, text: Cow<'de, str>) -> Option<Self::Value> {
        Some(text)
    }

    fn number(self, number: &dyn fmt::Display) -> Option<Self::Value> {
        Some(number.to_string().into())
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> WantedField<'de> for Object<T> {
    type Value = T;

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

struct WordsOrIds;

impl<'de> WantedField<'de> for WordsOrIds {
    type Value = OneOrMore<'de>;

    fn words(self, text: Cow<'de, str>) -> Option<Self::Value> {
        Some(OneOrMore::One(text))
    }

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Self::Value>, A::Error> {
        let ids = Ids::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Some(OneOrMore::More(ids)))
    }
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> WantedField<'de> for List<T> {
    type Value = Vec<T>;

    fn seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Vec<T>>, A::Error> {
        let mut all = Vec::new();
        while let Some(Maybe(item)) = seq.next_element()? {
            all.extend(item);
        }
        Ok(Some(all))
    }
}

/// An object of a list, if it is one.
struct Maybe<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(wire: D) -> Result<Self, D::Error> {
        object(wire).map(Maybe)
    }
}

struct Any<W>(W);

impl<'de, W: WantedField<'de>> Visitor<'de> for Any<W> {
    type Value = Option<W::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.0.words(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.words(text.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.0.number(&number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(self.0.number(&number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(self.0.number(&number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        self.0.seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.map(map)
    }
}
