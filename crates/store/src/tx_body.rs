//! The body of a transaction with its type erased, so that the engines are compiled once and not for each of hundreds
//! of transactions.

use std::any::Any;

use crate::error::{Error, Result};
use crate::tx::Tx;

pub(crate) type TxOutput = Box<dyn Any + Send>;

type TxClosure = dyn FnMut(&mut Tx<'_>) -> Result<TxOutput> + Send;

pub(crate) struct TxBody(Box<TxClosure>);

impl TxBody {
    pub fn new<T: Send + 'static>(mut body: impl FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static) -> Self {
        Self(Box::new(move |tx| Ok(Box::new(body(tx)?))))
    }

    /// On `Err` nothing of it may be committed.
    pub fn run(&mut self, mut tx: Tx<'_>) -> Result<TxOutput> {
        tx.run(&mut self.0)
    }
}

/// Returns the output of a body with this return type.
pub(crate) fn downcast_output<T: 'static>(value: TxOutput) -> Result<T> {
    let same = value.downcast().map_err(|_| Error::Other("a transaction returned another type".into()))?;
    Ok(*same)
}
