//! A server whose answers are those of a router. A handler that returns [`Cut`] closes the connection instead.

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use axum::response::IntoResponse;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use super::server::{Cut, Server};

/// Marks the response that stands for none, on its way through the router.
#[derive(Clone, Copy)]
struct Mark;

impl IntoResponse for Cut {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::default();
        response.extensions_mut().insert(Mark);
        response
    }
}

pub(super) fn serve(router: Router) -> Server {
    let router = TowerToHyperService::new(router);
    Server::start(move |request| {
        let answer = router.call(request);
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<Mark>().is_some() { Err(Cut) } else { Ok(response) }
        }
    })
}
