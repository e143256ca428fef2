//! The OpenAPI document, made from the list of operations.

use crate::failure::FailureBody;
use crate::routes::{Answers, Operation};
use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use utoipa::{PartialSchema, ToSchema};

/// A schema, its name, and those it refers to.
pub(crate) struct Schemas {
    name: String,
    all: Vec<(String, Json)>,
}

pub(crate) fn schemas_of<T: ToSchema + PartialSchema>() -> Schemas {
    let mut found = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut found);
    let json = |schema| serde_json::to_value(schema).unwrap_or(Json::Bool(true));
    let all = found.into_iter().map(|(name, schema)| (name, json(schema))).collect();
    Schemas { name: T::name().into_owned(), all }
}

/// Why there may be no answer.
const FAILURES: [(&str, &str); 10] = [
    ("400", "The request cannot be understood"),
    ("401", "A valid token is needed"),
    ("404", "There is nothing of the kind, or the asker may not see it"),
    ("405", "Only GET and HEAD are answered"),
    ("410", "The version of a cursor is no longer kept, or less of it is shown"),
    ("429", "Too many requests of one client at once"),
    ("500", "The lake could not be read"),
    ("502", "The archive of a capture cannot be read"),
    ("503", "Too many requests at once, or the lake cannot be reached"),
    ("504", "The lake did not answer in time"),
];

pub(crate) fn document(operations: &[Operation]) -> Bytes {
    let mut schemas = Map::new();
    let failure = schemas_of::<FailureBody<'_>>();
    let failure_ref = json!({ "$ref": format!("#/components/schemas/{}", failure.name) });
    schemas.extend(failure.all);
    let mut paths = Map::new();
    for operation in operations {
        let content = match &operation.answers {
            Answers::Json(found) => {
                schemas.extend(found.all.iter().cloned());
                let schema = json!({ "$ref": format!("#/components/schemas/{}", found.name) });
                json!({ "application/json": { "schema": schema } })
            }
            Answers::Types(types) => Json::Object(types.iter().map(|kind| ((*kind).to_owned(), json!({}))).collect()),
        };
        let mut responses = Map::new();
        responses.insert("200".into(), json!({ "description": "The answer", "content": content }));
        responses.insert("304".into(), json!({ "description": "The asker has the answer already" }));
        for (status, description) in FAILURES {
            let content = json!({ "application/json": { "schema": failure_ref } });
            responses.insert(status.into(), json!({ "description": description, "content": content }));
        }
        for (at, path) in operation.paths.iter().enumerate() {
            let id = if at == 0 { operation.id.to_owned() } else { format!("{}_{}", operation.id, at + 1) };
            let mut parameters: Vec<Json> = path_params(path).map(path_param).collect();
            parameters.extend((operation.params)());
            let get = json!({
                "operationId": id, "summary": operation.summary, "parameters": parameters, "responses": responses,
            });
            paths.insert((*path).to_owned(), json!({ "get": get }));
        }
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Trawl", "version": env!("CARGO_PKG_VERSION"),
            "description": "Which datasets hold a domain, which URLs they hold, and the bytes of captures.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "api_key": { "type": "apiKey", "in": "header", "name": "X-Api-Key" },
            },
        },
        // A token is not needed for what is public.
        "security": [{}, { "bearer": [] }, { "api_key": [] }],
    });
    serde_json::to_vec_pretty(&document).unwrap_or_default().into()
}

fn path_params(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_param(name: &str) -> Json {
    let description = match name {
        "domain" => "A host name in any spelling: it stands for its registrable domain",
        _ => "The number or the name of a dataset",
    };
    let schema = match name {
        "domain" => json!({ "type": "string", "minLength": 1, "format": "idn-hostname" }),
        _ => json!({ "type": "string", "minLength": 1, "pattern": "^[^/]+$" }),
    };
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;

    #[test]
    fn every_reference_leads_somewhere() {
        let document: Json = serde_json::from_slice(&routes::document()).unwrap();
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1) {
            let name = name.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name} is not described");
        }
        assert_eq!(document["openapi"], "3.1.0");
        let operations = document["paths"].as_object().unwrap();
        assert!(operations.len() >= 16 && operations.contains_key("/domain/{domain}"));
    }
}
