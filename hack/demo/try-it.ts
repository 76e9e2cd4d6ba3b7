import type { Ports } from './ports.ts';

/** What to try once the table has been shown: commands to copy, and what they are for. */
export function tryIt(ports: Ports, rulesFolder: string): string {
  const envoy = `http://127.0.0.1:${ports.envoy}`;
  const debug = `http://127.0.0.1:${ports.limiterDebug}`;
  const question = '{"domain": "demo", "descriptors": [{"entries": [{"key": "tenant", "value": "me"}]}]}';
  return `
All of it stays up. Three requests an hour for each tenant, then 429:
  curl -i -H 'x-tenant: me' ${envoy}/orders
Never counted, always refused, refused in the statistics only:
  curl -i ${envoy}/open
  curl -i ${envoy}/closed
  curl -i ${envoy}/beta
The rate limit service itself: a decision, its health, its rules, its statistics, why a rule matches
  curl -i http://127.0.0.1:${ports.limiterHttp}/json -d '${question}'
  curl -i http://127.0.0.1:${ports.limiterHttp}/healthcheck
  curl ${debug}/rlconfig
  curl ${debug}/stats
  curl ${debug}/explain -d '${question}'
What the management server serves, and to whom (a page for the browser, too):
  curl http://127.0.0.1:${ports.xdsAdmin}/snapshot
  http://127.0.0.1:${ports.xdsAdmin}/
What Envoy counted:
  curl 'http://127.0.0.1:${ports.envoyAdmin}/stats?filter=cluster.upstream.ratelimit'
Change a rule and ask again: it is in force as soon as the file is saved, and a mistake in it is told here:
  ${rulesFolder}/tenants.yaml

Ctrl-C stops everything.
`;
}
