import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { Health } from '@tollgate/kit/health';
import { runSteps } from '@tollgate/kit/time';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleSet } from '@tollgate/rules/rule-set';
import { fileSpelling } from '@tollgate/rules/spelling';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { StatsRegistry } from '../metrics/registry.ts';
import { createCallTimer } from '../metrics/server-stats.ts';
import type { CounterStore, CreateStore, Hit } from '../stores/counter-store.ts';
import { type DecisionContext, decide, shouldRateLimit, shouldRateLimitPath } from './decide.ts';
import { LocalCache } from './local-cache.ts';
import { getDecisionOptions } from './options.ts';
import { DecisionStats } from './stats.ts';

// Without a warm-up the first call takes ten times as long as the tenth. Accepting a connection
// needs one, too.
const connections = 3;
const callsPerConnection = 40;
/** A slow store or machine must not delay readiness for longer. */
const timeoutMs = 3_000;

const domain = 'tollgate-warm-up';

interface WarmUpOptions {
  /** Creates a counter store for the warm-up alone. */
  readonly createStore: CreateStore;
  readonly context: Context;
  readonly signal: AbortSignal;
}

/**
 * Calls a gRPC server on loopback, so that the first calls after readiness run compiled code. The
 * server has rules, statistics, a local cache and connections to the counter store of its own: a
 * call of the warm-up must not be visible in those of the service. The calls add 0 to counters with
 * a TTL of one second. Failures are logged and otherwise ignored.
 */
export async function warmUp(
  settings: Settings,
  { createStore, context: { logger, ...live }, signal: stopping }: WarmUpOptions,
): Promise<void> {
  // The ACL of a store may not allow the keys of the warm-up.
  const silent = logger.child({}, { level: 'silent' });
  const context: Context = { ...live, logger: silent, health: new Health(), stats: new StatsRegistry() };
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
  try {
    const store = await createStore(settings, context);
    try {
      await store.start({ signal });
      await callServer(createServer(settings, context, store), signal);
    } finally {
      await store.close();
    }
  } catch (error) {
    logger.debug({ err: error }, 'warm-up failed');
  }
}

async function callServer(server: UnaryServer, signal: AbortSignal): Promise<void> {
  try {
    const port = await server.start();
    for (let i = 0; i < connections && !signal.aborted; i += 1) await callOverConnection(port, signal);
  } finally {
    await server.stop(AbortSignal.abort());
  }
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

function createServer(settings: Settings, context: Context, store: CounterStore): UnaryServer {
  const { stats, health, logger, nowSeconds, random } = context;
  const { localCacheSizeBytes } = settings;
  const rules = compileWarmUpRules();
  const decisionContext: DecisionContext = {
    rules: () => rules,
    store: {
      take: (hits) => store.take(hits.map(withShortTtl)),
      peek: (hits) => store.peek(hits),
    },
    localCache: localCacheSizeBytes === 0 ? undefined : new LocalCache(localCacheSizeBytes),
    stopIncrementWhenOverLimit: false,
    stats: new DecisionStats(stats),
    nowSeconds,
    random,
    options: getDecisionOptions(settings),
  };
  return new UnaryServer({
    handlers: {
      [shouldRateLimitPath]: shouldRateLimit((request, call) => decide(decisionContext, request, call)),
    },
    health,
    serviceName: 'ratelimit',
    begin: createCallTimer(stats),
    guard: everyPeer,
    logger,
    address: '127.0.0.1:0',
    addressSetting: 'GRPC_PORT',
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
  });
}

/** `hits_addend` 0 creates a counter of 0, which then expires after a second. */
function withShortTtl(hit: Hit): Hit {
  return { ...hit, secondsLeft: 1, ttlSeconds: 1 };
}
function compileWarmUpRules(): RuleSet {
  const rateLimit = { unit: 'minute', requestsPerUnit: 100 };
  const document = {
    source: domain,
    spelling: fileSpelling,
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

function encodeRequest(): Buffer {
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

/** Resolves when the call has ended, with or without success. */
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
    stream.end(encodeRequest());
  });
}
