//! `namespace()`: the one thing a template can change, so the one that can hold itself. The engine's
//! own overflows the stack when such a circle is printed or compared; this one shows its attributes
//! only by name.

use minijinja::value::{DynObject, Kwargs, Object, ObjectRepr, Value};
use minijinja::{Error, ErrorKind, State};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Default)]
struct Space {
    attributes: Mutex<HashMap<String, Value>>,
}

impl Space {
    fn attributes(&self) -> MutexGuard<'_, HashMap<String, Value>> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<namespace>")
    }
}

impl Object for Space {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.attributes().get(key.as_str()?).cloned()
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let address = |space: &Space| std::ptr::from_ref(space) as usize;
        Some(address(self).cmp(&address(other.downcast_ref::<Space>()?)))
    }
}

/// `namespace({...}, name=value, ...)`
pub fn namespace(first: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let space = Space::default();
    if let Some(first) = first {
        let pairs = first.as_object().and_then(|object| object.try_iter_pairs());
        for (key, value) in pairs.into_iter().flatten() {
            space.attributes().insert(key.to_string(), value);
        }
    }
    for name in named.args() {
        space.attributes().insert(name.to_owned(), named.get(name)?);
    }
    let space = Arc::new(space);
    OF_THIS_RENDER.with_borrow_mut(|all| all.push(Arc::downgrade(&space)));
    Ok(Value::from_dyn_object(space))
}

thread_local! {
    /// Every render has a thread of its own.
    static OF_THIS_RENDER: RefCell<Vec<Weak<Space>>> = const { RefCell::new(Vec::new()) };
}

/// Opens the circles that a render left behind, so that they can be freed.
pub fn release() {
    for space in OF_THIS_RENDER.take() {
        if let Some(space) = space.upgrade() {
            // Freed after the lock is: a value in there may be the namespace itself.
            let attributes = std::mem::take(&mut *space.attributes());
            drop(attributes);
        }
    }
}

pub fn is_namespace(value: &Value) -> bool {
    value.downcast_object_ref::<Space>().is_some()
}

/// `{% set variable.attribute = value %}`
pub fn set(state: &State, variable: &str, attribute: &str, value: Value) -> Result<(), Error> {
    let target = state.lookup(variable).unwrap_or_default();
    let Some(space) = target.downcast_object_ref::<Space>() else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("{variable}.{attribute} cannot be set: only a namespace can change"),
        ));
    };
    space.attributes().insert(attribute.to_owned(), value);
    Ok(())
}
