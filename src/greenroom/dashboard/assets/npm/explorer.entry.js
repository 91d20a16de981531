// GraphiQL, which starts itself in the element with the id "explorer".
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { GraphiQL } from "graphiql";
import "graphiql/graphiql.css";

const place = document.getElementById("explorer");
const address = place.dataset.queries;
const token = document.querySelector('meta[name="csrf-token"]').content;

async function fetcher({ query, variables, operationName }) {
  const body = new URLSearchParams({ query, variables: JSON.stringify(variables ?? {}), operationName: operationName ?? "" });
  const answer = await fetch(address, { method: "POST", body, headers: { "X-CSRF-Token": token, Accept: "application/json" } });
  return answer.json();
}

createRoot(place).render(createElement(GraphiQL, { fetcher, defaultQuery: place.dataset.query, shouldPersistHeaders: false, isHeadersEditorEnabled: false }));
