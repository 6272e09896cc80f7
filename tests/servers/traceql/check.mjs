// Reads queries as a JSON array and prints, as one, where each of them is no TraceQL: positions of characters.
import { readFileSync } from "node:fs";
import { parser } from "@grafana/lezer-traceql";

const wrong = JSON.parse(readFileSync(0, "utf8")).map((query) => {
  const places = [];
  parser.parse(query).iterate({ enter: (node) => void (node.type.isError && places.push(node.from)) });
  return places;
});
console.log(JSON.stringify(wrong));
