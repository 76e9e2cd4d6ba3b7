import { createLogger } from '@tollgate/kit/logger';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import { Registry } from 'prom-client';
import type { KnownCaller } from '../../src/ext-authz/identity-headers.ts';
import { trustIssuers } from '../../src/ext-authz/issuer-rules.ts';
import { loadKeys } from '../../src/issuers/discovery.ts';
import { TokenIntrospection } from '../../src/issuers/introspection.ts';
import { Issuers, type TokenVerification } from '../../src/issuers/issuers.ts';
import type { ClusterAccess } from '../../src/issuers/kubernetes.ts';
import { IssuerMetrics } from '../../src/issuers/metrics.ts';

export interface TestIssuers {
  readonly issuers: Issuers<KnownCaller>;
  readonly clock: FakeClock;
  /** Its log so far. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  readonly registry: Registry;
  /** Loads that wait for their time, with the delay. */
  readonly timers: readonly { readonly delayMs: number; readonly run: () => void }[];
  /** `accepted <user or client>`, `pending`, `foreign`, or the reason. */
  ask(token: string, timeoutMs?: number): Promise<string>;
  /** Replaces the `issuers` of the routes file. */
  replace(issuers: string): void;
}

interface Options {
  readonly clock?: FakeClock;
  readonly privateHosts?: readonly string[];
  readonly cluster?: ClusterAccess;
}

/** The issuers of a routes file, started. Timers run when a test says so. */
export function startIssuers(text: string, options: Options = {}): TestIssuers {
  const { clock = fakeClock(Date.now()), privateHosts = ['127.0.0.1', 'localhost'], cluster } = options;
  const log: Readonly<Record<string, unknown>>[] = [];
  const logger = createLogger({
    level: 'debug',
    format: 'json',
    destination: { write: (line) => void log.push(JSON.parse(line)) },
  });
  const registry = new Registry();
  const timers: { delayMs: number; run: () => void }[] = [];
  const { nowMs } = clock;
  const issuers = new Issuers<KnownCaller>({
    load: (definition) => loadKeys(definition, { privateHosts, cluster }),
    introspection: new TokenIntrospection({ privateHosts, nowMs, logger }),
    schedule: (delayMs, run) => {
      const timer = { delayMs, run };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
    metrics: new IssuerMetrics(registry),
    nowMs,
    logger,
  });
  const replace = (list: string) => {
    const parsed = parseRouteRules(`issuers:\n${list}`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    issuers.replace(trustIssuers(parsed.rules.issuers, { extAuthzDefaultPlan: 'free' }));
  };
  replace(text);
  issuers.start();
  const ask = async (token: string, timeoutMs = 20_000) => {
    const known = issuers.recall(token, nowMs());
    if (known !== undefined) return `cached ${known.identity.userId ?? known.identity.clientId}`;
    const result = await issuers.verify(token, timeoutMs);
    return result === undefined ? 'not of another issuer' : describeResult(result);
  };
  return { issuers, clock, log, registry, timers, ask, replace };
}

function describeResult(result: TokenVerification<KnownCaller>): string {
  if (result.ok) return `accepted ${result.caller.identity.userId ?? result.caller.identity.clientId}`;
  return 'unavailable' in result ? `unavailable: ${result.unavailable}` : result.reason;
}
