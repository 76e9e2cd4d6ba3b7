import type { Ports } from './ports.ts';

/** What to try once the table has been shown: commands to copy, and what they are for. */
export function tryIt(ports: Ports, rulesFolder: string): string {
  const envoy = `http://127.0.0.1:${ports.envoy}`;
  const debug = `http://127.0.0.1:${ports.limiterDebug}`;
  const question = '{"domain": "demo", "descriptors": [{"entries": [{"key": "tenant", "value": "me"}]}]}';
  return `
All of it stays up. Through Envoy:
  curl -i -H 'x-tenant: me' ${envoy}/orders
  curl -i ${envoy}/open
  curl -i ${envoy}/closed
  curl -i ${envoy}/beta
Asking the rate limit service itself:
  curl -i http://127.0.0.1:${ports.limiterHttp}/json -d '${question}'
  curl http://127.0.0.1:${ports.limiterHttp}/healthcheck
Looking inside: rules, counters, which rule matches a request and why, Envoy's view
  curl ${debug}/rlconfig
  curl ${debug}/stats
  curl ${debug}/explain -d '${question}'
  curl 'http://127.0.0.1:${ports.envoyAdmin}/stats?filter=ratelimit'
Edit a rule and ask again; it is in force when the file is saved:
  ${rulesFolder}/demo.yaml

Ctrl-C stops everything.
`;
}
