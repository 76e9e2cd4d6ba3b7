import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Envoy } from '@tollgate/testkit/envoy';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { type AuthService, startAuthService } from '../auth/auth-service.ts';
import { type LoopResult, runClosedLoop } from '../auth/closed-loop.ts';
import { openHttpConnection, requestBytes } from '../auth/http-connection.ts';
import { readProcessUsage } from '../process-usage.ts';
import { type Service, startService } from '../service-process.ts';
import { type ChainName, chainDomain, chains, startChainEnvoy } from './chain-envoy.ts';
import type { BenchDuration } from './measure-checks.ts';
import { signUpUsers, userSettings } from './users.ts';

/** What a chain came to. */
export interface ChainResult {
  readonly chain: ChainName;
  /** One request at a time: what each filter adds for a user. */
  readonly oneAtATime: LoopResult;
  /** Many at once: what the machine can do. */
  readonly manyAtOnce: LoopResult;
  /** CPU time per request with many at once, of each service. */
  readonly cpuMicros: Readonly<Record<'auth' | 'limiter', number>>;
}

interface Platform {
  readonly envoy: Envoy;
  readonly auth: AuthService;
  readonly limiter: Service;
  readonly tokens: readonly string[];
}

const users = 100;
const manyConnections = 16;

/** Starts the auth server, the limiter with counters in memory, and an Envoy, and measures requests through each chain. */
export async function measureChain(
  duration: BenchDuration,
  progress: (text: string) => void,
): Promise<ChainResult[]> {
  const folder = temporaryFolder();
  const undo: (() => void | Promise<void>)[] = [() => folder.remove()];
  try {
    const files = writeFiles(folder.path);
    const auth = await startAuthService({ ...userSettings, SVC_EXT_AUTHZ_ROUTES_FILE: files.routes });
    undo.push(() => auth.stop());
    const limiter = await startService({ runtimeRoot: folder.path, nodeFlags: [] });
    undo.push(() => limiter.stop());
    const envoy = await startChainEnvoy({ extAuthz: auth.extAuthzPort, ratelimit: limiter.grpcPort });
    undo.push(() => envoy.stop());
    const platform = { envoy, auth, limiter, tokens: await signUpUsers(auth.port, users) };
    const results: ChainResult[] = [];
    for (const chain of Object.keys(chains) as ChainName[]) {
      progress(`through Envoy: ${chain}\n`);
      results.push(await measure(chain, platform, duration));
    }
    return results;
  } finally {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  }
}

async function measure(
  chain: ChainName,
  platform: Platform,
  { warmUpMs, durationMs }: BenchDuration,
): Promise<ChainResult> {
  const port = platform.envoy.ports[chain] ?? 0;
  const one = await openAskers(port, platform.tokens, 1);
  const many = await openAskers(port, platform.tokens, manyConnections);
  try {
    await runClosedLoop(many.askers, warmUpMs);
    const before = usageOf(platform);
    const manyAtOnce = await runClosedLoop(many.askers, durationMs);
    const after = usageOf(platform);
    const each = (name: keyof typeof after): number =>
      ((after[name] - before[name]) * 1000) / manyAtOnce.requests;
    const oneAtATime = await runClosedLoop(one.askers, durationMs);
    const cpuMicros = { auth: each('auth'), limiter: each('limiter') };
    return { chain, oneAtATime, manyAtOnce, cpuMicros };
  } finally {
    one.close();
    many.close();
  }
}

function usageOf({ auth, limiter }: Platform) {
  return {
    auth: readProcessUsage(auth.pid).cpuMs,
    limiter: readProcessUsage(limiter.pid).cpuMs,
  };
}

/** Connections whose requests are those of all users in turn. */
async function openAskers(port: number, tokens: readonly string[], connections: number) {
  const requests = tokens.map((token) => requestBytes('GET', '/orders/7', { token }));
  const opened = await Promise.all(Array.from({ length: connections }, () => openHttpConnection(port)));
  let next = 0;
  const askers = opened.map((connection) => async () => {
    next = (next + 1) % requests.length;
    const { status, body } = await connection.ask(requests[next] ?? Buffer.alloc(0));
    if (status !== 200) throw new Error(`Envoy answered ${status}: ${body}`);
  });
  return {
    askers,
    close: () => {
      for (const connection of opened) connection.close();
    },
  };
}

function writeFiles(folder: string): { readonly routes: string } {
  const routes = join(folder, 'routes.yaml');
  // Users of the bench have no password.
  writeFileSync(routes, 'routes:\n  - { path: /**, anonymous: true }\n');
  mkdirSync(join(folder, 'config'));
  const rules = [
    `domain: ${chainDomain}`,
    'descriptors:',
    '  - key: plan',
    '    descriptors:',
    '      - key: user_id',
    '        rate_limit: { unit: hour, requests_per_unit: 1000000000 }',
  ];
  writeFileSync(join(folder, 'config', 'chain.yaml'), `${rules.join('\n')}\n`);
  return { routes };
}
