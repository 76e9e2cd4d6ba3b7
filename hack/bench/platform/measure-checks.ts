import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { type AuthService, startAuthService } from '../auth/auth-service.ts';
import { runLoad } from '../load/run-load.ts';
import { readProcessUsage } from '../process-usage.ts';
import { checkPath, writeCheck } from './check-message.ts';
import { signUpUsers, userSettings } from './users.ts';

/** What is asked about. */
interface CheckScenario {
  readonly name: string;
  readonly users: number;
  /** Made of each token of a user. */
  readonly tokenOf: (token: string) => string;
  /** Code of google.rpc.Status that every answer has. */
  readonly code: 0 | 16;
}

/** A scenario with what it came to. */
export interface ChecksResult {
  readonly name: string;
  readonly perSecond: number;
  /** CPU time of the server per check, PostgreSQL not included. */
  readonly cpuMicros: number;
  /** Resident memory of the server at the end. */
  readonly rssBytes: number;
}

/** How long. */
export interface BenchDuration {
  readonly warmUpMs: number;
  readonly durationMs: number;
}

const connections = 8;
const streams = 16;
const manyUsers = 1_000;
const callTimeoutMs = 5_000;

const keep = (token: string): string => token;
const tamper = (token: string): string => `${token.slice(0, -6)}AAAAAA`;

function scenariosOf(alg: string): readonly CheckScenario[] {
  return [
    { name: `${alg}, one user`, users: 1, tokenOf: keep, code: 0 },
    { name: `${alg}, ${manyUsers} users`, users: manyUsers, tokenOf: keep, code: 0 },
    { name: `${alg}, forged tokens`, users: manyUsers, tokenOf: tamper, code: 16 },
  ];
}

/** Measures Checks of tokens signed with a secret, and with a private key. */
export async function measureChecks(
  duration: BenchDuration,
  progress: (text: string) => void,
): Promise<ChecksResult[]> {
  const results: ChecksResult[] = [];
  for (const alg of ['HS256', 'ES256'] as const) {
    const folder = temporaryFolder();
    const service = await startAuthService({
      ...userSettings,
      SVC_EXT_AUTHZ_ROUTES_FILE: writeRoutes(folder.path),
      ...(alg === 'ES256' && { SVC_JWT_KEYS: es256Keys() }),
    });
    try {
      const tokens = await signUpUsers(service.port, manyUsers);
      for (const scenario of scenariosOf(alg)) {
        progress(`${scenario.name}\n`);
        results.push(await measure(scenario, { service, tokens, duration }));
      }
    } finally {
      await service.stop();
      folder.remove();
    }
  }
  return results;
}

async function measure(
  { name, users, tokenOf, code }: CheckScenario,
  run: {
    readonly service: AuthService;
    readonly tokens: readonly string[];
    readonly duration: BenchDuration;
  },
): Promise<ChecksResult> {
  const { pid, extAuthzPort: port } = run.service;
  const messages = run.tokens.slice(0, users).map((token) => writeCheck(tokenOf(token)));
  // The load counts answers and does not look into them.
  await demandCode(port, messages[0], code);
  let before = readProcessUsage(pid);
  let after = before;
  const { counts } = await runLoad(
    {
      host: '127.0.0.1',
      port,
      path: checkPath,
      connections,
      messages: messages.map((message) => Buffer.from(message).toString('base64')),
      warmUpMs: run.duration.warmUpMs,
      measureMs: run.duration.durationMs,
      load: { kind: 'closed', streams },
    },
    {
      onMeasuring: () => {
        before = readProcessUsage(pid);
      },
      onMeasured: () => {
        after = readProcessUsage(pid);
      },
    },
  );
  const failures = Object.entries(counts.failures);
  if (failures.length > 0)
    throw new Error(`${name}: ${failures.map(([what, n]) => `${n} × ${what}`).join(', ')}`);
  return {
    name,
    perSecond: counts.decisions / (counts.elapsedMs / 1000),
    cpuMicros: ((after.cpuMs - before.cpuMs) * 1000) / counts.decisions,
    rssBytes: after.rssBytes,
  };
}

async function demandCode(port: number, message: Uint8Array | undefined, wanted: number): Promise<void> {
  if (message === undefined) throw new Error('no message to send');
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  try {
    const reply = await new Promise<Uint8Array>((resolve, reject) => {
      client.makeUnaryRequest(
        checkPath,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => bytes,
        message,
        { deadline: Date.now() + callTimeoutMs },
        (error, value) => (value === undefined ? reject(error) : resolve(value)),
      );
    });
    const code = fromBinary(CheckResponseSchema, reply).status?.code ?? 0;
    if (code !== wanted) throw new Error(`the check answered ${code}, and not ${wanted}`);
  } finally {
    client.close();
  }
}

/** As an application has them: some routes, the last of which decides. Users of the bench have no password. */
function writeRoutes(folder: string): string {
  const file = join(folder, 'routes.yaml');
  const routes = [
    'routes:',
    ...['/healthz', '/docs/**', '/login'].map((path) => `  - { path: ${path}, access: public }`),
    '  - { path: /admin/**, roles: [admin], aal: aal2 }',
    '  - { path: /**, anonymous: true }',
  ];
  writeFileSync(file, `${routes.join('\n')}\n`);
  return file;
}

function es256Keys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' });
  return JSON.stringify([{ ...jwk, alg: 'ES256', kid: 'bench', key_ops: ['sign', 'verify'] }]);
}
