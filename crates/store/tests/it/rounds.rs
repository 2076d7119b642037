use polyclaw_domain::job::JobPriority;
use polyclaw_store::rounds::{self, Round, Seat, Taken};
use polyclaw_store::{Db, Result};
use serde_json::json;

use crate::rows::{NOW, address, agent, key, turn};

on_every_engine!(a_round_is_open_until_it_is_closed, a_seat_is_taken_once);

pub fn round(id: &str) -> Round {
    let seat = |name: &str| Seat { agent: agent(name), session: key(name), turn: None };
    Round {
        id: id.into(),
        text: "what do you think?".into(),
        parts: vec![],
        address: address(),
        meta: Some(json!({ "sender": "1" })),
        priority: JobPriority::Group,
        in_turn: true,
        see_previous: false,
        seats: vec![seat("b"), seat("a")],
        created_at: NOW,
    }
}

async fn a_round_is_open_until_it_is_closed(db: Db) -> Result<()> {
    for id in ["r2", "r1"] {
        db.write(move |tx| rounds::insert(tx, &round(id))).await?;
    }
    assert_eq!(db.read(rounds::open).await?, ["r1", "r2"]);
    assert_eq!(db.read(|tx| rounds::get(tx, "r1")).await?, Some(round("r1")));
    assert_eq!(db.read(|tx| rounds::get(tx, "r3")).await?, None);
    db.write(|tx| rounds::close(tx, "r1")).await?;
    assert_eq!(db.read(rounds::open).await?, ["r2"]);
    assert_eq!(db.write(|tx| rounds::forget(tx, NOW)).await?, 0, "not old enough");
    assert_eq!(db.write(|tx| rounds::forget(tx, NOW.plus(1))).await?, 1, "the open one stays");
    assert_eq!(db.read(|tx| rounds::get(tx, "r1")).await?, None);
    Ok(())
}

async fn a_seat_is_taken_once(db: Db) -> Result<()> {
    db.write(|tx| rounds::insert(tx, &round("r"))).await?;
    for taken in [Taken::Turn(turn("t1")), Taken::Turn(turn("t2")), Taken::Refused] {
        db.write(move |tx| rounds::take_seat(tx, "r", 0, &taken)).await?;
    }
    db.write(|tx| rounds::take_seat(tx, "r", 1, &Taken::Refused)).await?;
    let seats = db.read(|tx| rounds::get(tx, "r")).await?.unwrap().seats;
    let taken: Vec<_> = seats.into_iter().map(|seat| seat.turn).collect();
    assert_eq!(taken, [Some(Taken::Turn(turn("t1"))), Some(Taken::Refused)]);
    Ok(())
}
