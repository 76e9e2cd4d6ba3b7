import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from './await-until.ts';
import { type Certificates, makeCertificates } from './certificates.ts';
import { temporaryFolder } from './folders.ts';
import { type KubeBinaries, kubeAvailability } from './kube-binaries.ts';
import { KubeReader } from './kube-requests.ts';
import { type ServerProcess, startServerProcess } from './processes.ts';
import { withFreePort } from './tcp.ts';

/** A running etcd of one member. */
interface Etcd extends ServerProcess {
  /** Client URL. */
  readonly url: string;
  /**
   * Compacts the history up to now, as the API server does every five minutes: requests for older
   * revisions fail with "compacted".
   */
  compact(): Promise<void>;
}

/** Requests take milliseconds, unless the machine stalls. */
const requestTimeoutMs = 20_000;

/**
 * Starts etcd with its data below `folder` and waits until it is healthy.
 *
 * @throws Error when it does not start.
 */
function startEtcd(binary: string, folder: string): Promise<Etcd> {
  return withFreePort(async (port) => {
    const url = `http://127.0.0.1:${port}`;
    const server = await startServerProcess({
      command: binary,
      args: [
        ...['--data-dir', join(folder, 'etcd'), '--listen-client-urls', url, '--advertise-client-urls', url],
        // No peers. The data need not survive the machine, so there is no fsync.
        ...['--listen-peer-urls', 'http://127.0.0.1:0', '--unsafe-no-fsync'],
      ],
      ready: () => requestEtcd(`${url}/health`).then(() => {}),
    });
    return { ...server, url, compact: () => compact(url) };
  });
}

/** etcd's JSON gateway of its gRPC API: no client library needed for two calls. */
async function compact(url: string): Promise<void> {
  const status = await requestEtcd(`${url}/v3/maintenance/status`, {});
  const revision = status.header?.revision;
  await requestEtcd(`${url}/v3/kv/compaction`, { revision, physical: true });
}

/** Part of a response of etcd. */
interface EtcdAnswer {
  header?: { revision?: string };
}

async function requestEtcd(url: string, body?: object): Promise<EtcdAnswer> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(requestTimeoutMs),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd answered ${response.status} to ${url}: ${text}`);
  // etcd's own JSON; both fields may be absent.
  return JSON.parse(text) as EtcdAnswer;
}

/** A user with a token. RBAC defines the permissions. */
interface KubeUser {
  /** `jane`, or `system:serviceaccount:<namespace>:<name>` to stand for a service account. */
  name: string;
  /** Default none (`system:authenticated` is added by the API server). */
  groups?: readonly string[];
}

/** The users of one API server. */
interface KubeUsers {
  /** File for `--token-auth-file`. */
  readonly tokenFile: string;
  /** @throws Error for an unknown user. */
  tokenFor(name: string): string;
  /** Path of a kubeconfig for that user. @throws Error as `tokenFor` does. */
  kubeconfigFor(name: string): string;
}

/** Address of the API server. */
interface KubeEndpoint {
  url: string;
  caFile: string;
}

/** Creates a random token per user, and their file for the API server below `folder`. */
function makeKubeUsers(users: readonly KubeUser[], folder: string, endpoint: KubeEndpoint): KubeUsers {
  const tokens = new Map(users.map(({ name }) => [name, randomBytes(16).toString('hex')]));
  const tokenFile = join(folder, 'tokens.csv');
  const lines = users.map(
    ({ name, groups = [] }) => `${tokens.get(name)},${name},${name},"${groups.join()}"`,
  );
  writeFileSync(tokenFile, `${lines.join('\n')}\n`, { mode: 0o600 });

  function tokenFor(name: string): string {
    const token = tokens.get(name);
    if (token === undefined) throw new Error(`no user ${name}: name it in startKubeApiserver({ users })`);
    return token;
  }

  return {
    tokenFile,
    tokenFor,
    kubeconfigFor(name) {
      // Names of service accounts have colons, which not every file system accepts.
      const file = join(folder, `kubeconfig-${encodeURIComponent(name)}`);
      writeFileSync(file, kubeconfig(endpoint, tokenFor(name)), { mode: 0o600 });
      return file;
    },
  };
}

/** JSON is YAML. */
function kubeconfig({ url, caFile }: KubeEndpoint, token: string): string {
  const named = 'test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: named, cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name: named, user: { token } }],
    contexts: [{ name: named, context: { cluster: named, user: named } }],
    'current-context': named,
  });
}

/** Output of kubectl. */
interface KubectlResult {
  /** 0 when all went well. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How one kubectl is run. */
interface KubectlOptions {
  binary: string;
  kubeconfigFile: string;
  /**
   * Where it may keep what it learns of the API; the caches of the person who runs the tests are
   * left alone.
   */
  home: string;
  /** Written to its standard input, for `-f -`. */
  input?: string;
}

/** Far more than any command takes, less than the deadline of a test. */
const timeoutMs = 60_000;

/** Enough for a list of 10,000 objects. */
const maxOutputBytes = 100_000_000;

/** Runs kubectl to its end. An answer other than 0 is not an error here. */
function runKubectl(args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  const { binary, kubeconfigFile, home, input = '' } = options;
  return new Promise((resolve, reject) => {
    const child = execFile(
      binary,
      [`--kubeconfig=${kubeconfigFile}`, ...args],
      { env: { HOME: home, GOGC: process.env.GOGC ?? '' }, timeout: timeoutMs, maxBuffer: maxOutputBytes },
      (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr });
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
        else reject(error);
      },
    );
    // It may end before it has read everything.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/** Options of a test's API server. */
export interface KubeApiserverOptions {
  /**
   * People and service accounts besides the administrator, who may do nothing until RBAC lets them.
   */
  users?: readonly KubeUser[];
  /** More arguments for kube-apiserver, such as `['--watch-cache=false']`. */
  args?: readonly string[];
}

/**
 * A running kube-apiserver with its etcd. No controllers and no nodes: objects are kept, nothing
 * acts on them.
 */
export interface KubeApiserver {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** The certificate authority that signed the server's certificate. */
  readonly caFile: string;
  /** The administrator's. */
  readonly kubeconfigFile: string;
  /** Bearer token of `admin` or one of the users asked for. */
  tokenFor(user: string): string;
  /** Path of a kubeconfig of `admin` or one of the users asked for. */
  kubeconfigFor(user: string): string;
  /**
   * Runs kubectl as the administrator, or as another user. An exit code other than 0 does not
   * throw.
   */
  kubectl(args: readonly string[], options?: { input?: string; as?: string }): Promise<KubectlResult>;
  /**
   * Reads an object or a list by its path, such as `/api/v1/namespaces/default/pods`, as the
   * administrator. For what tests wait for: each start of kubectl takes 0.07 s of CPU time.
   *
   * @throws Error with the answer when there is none.
   */
  get(path: string): Promise<unknown>;
  /**
   * Applies manifests (YAML or JSON, several documents) server-side as the administrator, and waits
   * until the CustomResourceDefinitions among them are served.
   *
   * @throws Error with kubectl's words when one is refused.
   */
  apply(manifests: string): Promise<void>;
  /**
   * Compacts the history of all objects. Lists and watches from before fail with 410, at
   * once with `args: ['--watch-cache=false']`, else after a restart: the API server's cache
   * remembers recent history.
   */
  compact(): Promise<void>;
  /** Ends the API server in good order, as a roll-out does: watches end, etcd keeps the objects. */
  stopApiserver(): Promise<void>;
  /** Ends it at once: connections break. */
  killApiserver(): Promise<void>;
  /** Starts it again where it was, with what etcd kept. */
  startApiserver(): Promise<void>;
  /** Ends all and removes the files. Idempotent. */
  stop(): Promise<void>;
  /** Log of the API server since its last start. */
  logs(): string;
}

const administrator: KubeUser = { name: 'admin', groups: ['system:masters'] };

/**
 * Starts etcd and kube-apiserver on free loopback ports with RBAC and all default admission, but
 * the one that wants a controller for service accounts. Ready in about three seconds.
 *
 * @throws Error when the programs are not installed or do not start; nothing is left running then.
 */
export async function startKubeApiserver(options: KubeApiserverOptions = {}): Promise<KubeApiserver> {
  const available = kubeAvailability();
  if (!available.ok) throw new Error(available.reason);
  const folder = temporaryFolder();
  const certificates = makeCertificates();
  const remove = () => {
    certificates.remove();
    folder.remove();
  };
  try {
    const etcd = await startEtcd(available.binaries.etcd, folder.path);
    try {
      const parts = { binaries: available.binaries, folder: folder.path, certificates, etcd };
      const kube = await withFreePort((port) => startOnPort(port, parts, options));
      return {
        ...kube,
        async stop() {
          await kube.stop();
          remove();
        },
      };
    } catch (error) {
      await etcd.kill();
      throw error;
    }
  } catch (error) {
    remove();
    throw error;
  }
}

interface Parts {
  binaries: KubeBinaries;
  folder: string;
  certificates: Certificates;
  etcd: Etcd;
}

async function startOnPort(
  port: number,
  { binaries, folder, certificates, etcd }: Parts,
  { users: wanted = [], args = [] }: KubeApiserverOptions,
): Promise<KubeApiserver> {
  const endpoint = { url: `https://127.0.0.1:${port}`, caFile: certificates.ca.certFile };
  const users = makeKubeUsers([administrator, ...wanted], folder, endpoint);
  const kubeconfigFile = users.kubeconfigFor(administrator.name);
  const reader = new KubeReader({
    url: endpoint.url,
    ca: readFileSync(endpoint.caFile, 'utf8'),
    token: users.tokenFor(administrator.name),
  });

  const start = () =>
    startServerProcess({
      command: binaries.kubeApiserver,
      args: [...apiserverArguments(port, { certificates, etcd, users }), ...args],
      async ready() {
        await reader.read('/readyz');
        // Made shortly after the server calls itself ready.
        await reader.read('/api/v1/namespaces/default');
      },
    });
  let server: ServerProcess = await start();

  const kubectl: KubeApiserver['kubectl'] = (kubectlArgs, { input, as } = {}) =>
    runKubectl(kubectlArgs, {
      binary: binaries.kubectl,
      kubeconfigFile: as === undefined ? kubeconfigFile : users.kubeconfigFor(as),
      home: folder,
      ...(input === undefined ? {} : { input }),
    });

  return {
    ...endpoint,
    kubeconfigFile,
    tokenFor: users.tokenFor,
    kubeconfigFor: users.kubeconfigFor,
    kubectl,
    get: async (path) => JSON.parse(await reader.read(path)),
    apply: (manifests) => apply(kubectl, manifests),
    compact: etcd.compact,
    stopApiserver: () => server.stop(),
    killApiserver: () => server.kill(),
    async startApiserver() {
      if (server.isRunning()) throw new Error('the API server is running already');
      server = await start();
    },
    async stop() {
      // Nothing is worth an orderly end: that takes a second.
      await server.kill();
      await etcd.kill();
      reader.close();
    },
    logs: () => server.logs(),
  };
}

function apiserverArguments(
  port: number,
  { certificates, etcd, users }: { certificates: Certificates; etcd: Etcd; users: KubeUsers },
): string[] {
  const { certFile, keyFile } = certificates.server;
  return [
    ...[`--etcd-servers=${etcd.url}`, '--bind-address=127.0.0.1', `--secure-port=${port}`],
    ...[`--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`],
    ...[`--token-auth-file=${users.tokenFile}`, '--authorization-mode=RBAC'],
    // Tokens of service accounts are signed with the server's own key: one pair less to make.
    '--service-account-issuer=https://kubernetes.default.svc',
    // Otherwise the discovery document names another address of this machine.
    `--service-account-jwks-uri=https://127.0.0.1:${port}/openid/v1/jwks`,
    ...[`--service-account-key-file=${certFile}`, `--service-account-signing-key-file=${keyFile}`],
    // It would refuse Pods whose service account no controller has made.
    '--disable-admission-plugins=ServiceAccount',
    // The API server is not reached through its Service here.
    ...['--service-cluster-ip-range=10.0.0.0/24', '--endpoint-reconciler-type=none'],
  ];
}

async function apply(kubectl: KubeApiserver['kubectl'], manifests: string): Promise<void> {
  const run = async (args: readonly string[], input?: string) => {
    const result = await kubectl(args, input === undefined ? {} : { input });
    if (result.code !== 0) throw new Error(`kubectl ${args.join(' ')} failed: ${result.stderr}`);
    return result.stdout;
  };
  const applied = await run(['apply', '--server-side', '-f', '-', '-o', 'name'], manifests);
  const definitions = applied.split('\n').filter((name) => name.startsWith('customresourcedefinition'));
  if (definitions.length > 0) {
    const resources = definitions.map((name) => name.slice(name.indexOf('/') + 1));
    const areServed = async (): Promise<boolean> => {
      await run(['wait', '--for=condition=Established', '--timeout=5s', ...definitions]);
      // The server hears of it a little later than a reader of the condition.
      await run(['get', resources.join()]);
      return true;
    };
    // kubectl gives up at once on a definition that has no conditions at all yet.
    await awaitUntil(areServed, { what: 'the CustomResourceDefinitions to be served', timeoutMs: 40_000 });
  }
}
