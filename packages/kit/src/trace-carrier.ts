/** Headers that carry a trace: W3C tracecontext and baggage, B3 in both forms. */
const traceHeaders = [
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
];

/** What `Tracing.extract` looks at, from requests that tell one header at a time. */
export function traceCarrier(
  header: (name: string) => string | undefined,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(traceHeaders.map((name) => [name, header(name)]));
}
