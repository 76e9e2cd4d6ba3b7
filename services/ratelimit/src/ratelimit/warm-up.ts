import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { runSteps } from '@tollgate/kit/steps';
import { monotonicNow } from '@tollgate/kit/time';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { CounterBackend, CounterHit } from '../backends/counter-backend.ts';
import { createStatsRegistry } from '../stats/registry.ts';
import { createServerStats } from '../stats/server-stats.ts';
import { createCountHits } from './hits.ts';
import { createDecider, createShouldRateLimit, type DeciderOptions, shouldRateLimitPath } from './service.ts';
import { createDecisionStats } from './stats.ts';

/** What warming up takes of the service. */
export interface WarmUpDeps {
  /** Started. */
  readonly backend: CounterBackend;
  readonly nowSeconds: () => number;
  readonly random: () => number;
  readonly logger: Logger;
}

// Without a warm-up the first call takes ten times as long as the tenth; after this it takes as long. Accepting a connection
// has to be warm as well.
const connections = 3;
const callsPerConnection = 40;
/** A slow store or machine must not put off readiness for longer. */
const timeoutMs = 3_000;

const domain = 'tollgate-warm-up';

/**
 * Makes calls to a gRPC server of its own on loopback, with rules of its own, so that the first calls after readiness run
 * compiled code over open connections to the counter store. They add 0 to counters that live for a second, and nothing to statistics.
 * A failure is logged and otherwise ignored.
 */
export async function warmUp(
  deps: WarmUpDeps,
  options: DeciderOptions,
  stopping: AbortSignal,
): Promise<void> {
  const { logger } = deps;
  const server = createServer(deps, options);
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
  try {
    const port = await server.start();
    for (let i = 0; i < connections && !signal.aborted; i += 1) await callOverConnection(port, signal);
  } catch (error) {
    logger.debug({ err: error }, 'warm-up failed');
  }
  await server.stop(AbortSignal.abort());
}

async function callOverConnection(port: number, signal: AbortSignal): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  const destroy = (): void => session.destroy();
  signal.addEventListener('abort', destroy, { once: true });
  try {
    await once(session, 'remoteSettings', { signal });
    for (let i = 0; i < callsPerConnection && !signal.aborted; i += 1) await call(session);
  } finally {
    signal.removeEventListener('abort', destroy);
    session.destroy();
  }
}

function createServer({ backend, nowSeconds, random, logger }: WarmUpDeps, options: DeciderOptions) {
  const stats = createStatsRegistry();
  const rules = compileWarmUpRules();
  const decide = createDecider(
    {
      rules: () => rules,
      countHits: createCountHits({
        backend: { ...backend, add: (hits) => backend.add(hits.map(shortLived)) },
        stopIncrementWhenOverLimit: false,
      }),
      stats: createDecisionStats(stats),
      nowSeconds,
      random,
    },
    options,
  );
  return new UnaryServer({
    handlers: { [shouldRateLimitPath]: createShouldRateLimit(decide) },
    health: new Health(),
    serviceName: 'ratelimit',
    begin: createServerStats(stats, monotonicNow).begin,
    guard: everyPeer,
    // The ACL of a store may not allow the keys of the warm-up.
    logger: logger.child({}, { level: 'silent' }),
    address: '127.0.0.1:0',
    addressSetting: 'GRPC_PORT',
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
  });
}

/** With `hits_addend` 0 a counter of 0 is made, which then lives for a second. */
function shortLived(hit: CounterHit): CounterHit {
  return { ...hit, secondsLeft: 1, ttlSeconds: 1 };
}

function compileWarmUpRules(): RuleSet {
  const rateLimit = { unit: 'minute', requestsPerUnit: 100 };
  const document = {
    source: domain,
    domain,
    descriptors: [
      { key: 'a', rateLimit, descriptors: [{ key: 'b', rateLimit: { ...rateLimit, unit: 'second' } }] },
      { key: 'a', value: 'x*', rateLimit },
    ],
  };
  const result = runSteps(compileRules([document], { mergeDomains: false }));
  if (!result.ok) {
    throw new TypeError('the rules of the warm-up must compile');
  }
  return result.rules;
}

function message(): Buffer {
  const entry = (key: string, value: string) => ({ key, value });
  const descriptors = [
    [entry('a', '1')],
    [entry('a', '1'), entry('b', '2')],
    [entry('a', 'xy')],
    [entry('none', '')],
  ].map((entries) => ({ entries, hitsAddend: 0n }));
  const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, { domain, descriptors }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Resolves when the call has ended, however it did. */
function call(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': shouldRateLimitPath,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    stream.once('close', resolve);
    stream.resume();
    stream.end(message());
  });
}
