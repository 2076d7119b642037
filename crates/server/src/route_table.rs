//! Routes with their descriptions, kept apart: a server builds its routes at start, and its API document on first
//! use.

use axum::Router;
use axum::routing::MethodRouter;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// The calls of one path.
pub struct ApiRoute<S: Clone + Send + Sync + 'static> {
    pub path: String,
    pub methods: MethodRouter<S>,
    pub described: fn() -> UtoipaMethodRouter<S>,
}

pub struct RouteTable<S: Clone + Send + Sync + 'static>(Vec<ApiRoute<S>>);

impl<S: Clone + Send + Sync + 'static> RouteTable<S> {
    pub fn new(calls: impl IntoIterator<Item = ApiRoute<S>>) -> Self {
        Self(calls.into_iter().collect())
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns all paths with their prefix.
    pub fn full_paths(&self, under: &str) -> Vec<String> {
        self.0.iter().map(|call| format!("{under}{}", call.path)).collect()
    }

    pub fn into_router(self, under: &str) -> Router<S> {
        let add = |router: Router<S>, call: ApiRoute<S>| {
            router.route(&format!("{under}{}", call.path), call.methods)
        };
        self.0.into_iter().fold(Router::new(), add)
    }

    /// Returns the router that the document is generated from.
    pub fn openapi_router(&self) -> OpenApiRouter<S> {
        self.0.iter().fold(OpenApiRouter::new(), |router, call| router.routes((call.described)()))
    }
}

/// Builds the [`ApiRoute`] of handlers that share a path and differ in their methods, as their attributes declare.
macro_rules! calls {
    ($($first:ident)::+ $(, $($more:ident)::+)* $(,)?) => {{
        use utoipa_axum::PathItemExt as _;
        let router = axum::routing::MethodRouter::new();
        let router = $crate::route_table::calls!(@on router, $($first)::+);
        $(let router = $crate::route_table::calls!(@on router, $($more)::+);)*
        $crate::route_table::ApiRoute {
            path: utoipa_axum::routes!(@path [path()] of $($first)::+),
            methods: router,
            described: || utoipa_axum::routes!($($first)::+ $(, $($more)::+)*),
        }
    }};
    (@on $router:ident, $($handler:ident)::+) => {{
        let methods = utoipa_axum::routes!(@path [methods()] of $($handler)::+);
        methods.iter().fold($router, |router, method| router.on(method.to_method_filter(), $($handler)::+))
    }};
}

pub(crate) use calls;
