import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { type KubeApiserver, startKubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { monotonicMs } from '../processes.ts';

/** Rules of one object. */
export const rulesPerObject = 4;

/** Each object has a domain of its own, of the same name. */
export function objectName(index: number): string {
  return `app-${String(index).padStart(5, '0')}`;
}

/** The RateLimitConfig number `index`, in YAML. `userLimit` is what an edit changes. */
function objectManifest(index: number, userLimit: number): string {
  const name = objectName(index);
  return `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata:
  name: ${name}
  namespace: default
spec:
  domain: ${name}
  descriptors:
    - key: user
      rateLimit:
        unit: Hour
        requestsPerUnit: ${userLimit}
    - key: route
      value: checkout
      rateLimit:
        unit: Second
        requestsPerUnit: 100
    - key: plan
      value: pro
      descriptors:
        - key: user
          rateLimit:
            unit: Minute
            requestsPerUnit: 600
    - key: remote_address
      rateLimit:
        unit: Second
        requestsPerUnit: 50
`;
}

/** The limit of all objects before the first edit; no run comes near it. */
const initialUserLimit = 1_000_000;

/**
 * Makes limits that no object has had before, so that the one in force tells which edit it came
 * from.
 */
export function createLimits(): { readonly initial: number; next(): number } {
  let last = initialUserLimit;
  return {
    initial: initialUserLimit,
    next() {
      last += 1;
      return last;
    },
  };
}

/** Objects that an xDS server reads and the bench edits. */
export interface ObjectSource {
  /** As the tables call it. */
  readonly label: string;
  /** Settings of services/xds that lead there. */
  readonly settings: Readonly<Record<string, string>>;
  /** Makes the objects 0 … `count` − 1, all with the same limit. */
  fill(count: number, userLimit: number): Promise<void>;
  /** Changes one object; answers when that was done, by `monotonicMs`. */
  edit(index: number, userLimit: number): Promise<number>;
  close(): Promise<void>;
}

/** Objects in one file, as a team would keep them. */
const objectsPerFile = 100;

/** Makes a folder of manifests, 100 objects in each file. Edits replace a file by renaming. */
export function createFolderObjects(): ObjectSource {
  const folder = temporaryFolder();
  const served = join(folder.path, 'served');
  mkdirSync(served);
  let limits: number[] = [];

  function writeFile(file: number): number {
    const first = file * objectsPerFile;
    const manifests = limits
      .slice(first, first + objectsPerFile)
      .map((limit, i) => objectManifest(first + i, limit));
    const aside = join(folder.path, 'aside.yaml');
    writeFileSync(aside, manifests.join('---\n'));
    renameSync(aside, join(served, `objects-${String(file).padStart(3, '0')}.yaml`));
    return monotonicMs();
  }

  return {
    label: 'folder',
    settings: { XDS_SOURCE: 'folder', XDS_FOLDER: served },
    async fill(count, userLimit) {
      limits = Array.from({ length: count }, () => userLimit);
      for (let file = 0; file * objectsPerFile < count; file++) writeFile(file);
    },
    async edit(index, userLimit) {
      limits[index] = userLimit;
      return writeFile(Math.floor(index / objectsPerFile));
    },
    async close() {
      folder.remove();
    },
  };
}

/** Objects of a real API server. */
export interface KubeObjects extends ObjectSource {
  /** Changes one object with `kubectl apply`; answers when kubectl had ended, by `monotonicMs`. */
  editWithKubectl(index: number, userLimit: number): Promise<number>;
  /** Changes one object; the time in milliseconds until it is ready. */
  editUntilReady(index: number, userLimit: number): Promise<number>;
  /** Number of objects that are ready. */
  countReady(): Promise<number>;
}

/** The parts of an object that say whether it is ready. */
interface LiveObject {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly observedGeneration: number;
    }[];
  };
}

function isReady({ metadata, status }: LiveObject): boolean {
  return (status?.conditions ?? []).some(
    (one) => one.type === 'Ready' && one.status === 'True' && one.observedGeneration === metadata.generation,
  );
}

/** Time between two looks at an object. */
const readyPollMs = 5;
const readyTimeoutMs = 300_000;

const crdFile = join(import.meta.dirname, '../../../crds/ratelimitconfigs.yaml');
const objectsPath = '/apis/ratelimit.tollgate.dev/v1alpha1/namespaces/default/ratelimitconfigs';

/** Writes at the same time; more do not make the API server faster on two cores. */
export const maxWritesInFlight = 16;
const writeTimeoutMs = 30_000;

/** Calls of an API server over TLS connections that are kept. */
export interface KubeCalls {
  /** Applies a manifest server-side; answers when that was done, by `monotonicMs`. */
  apply(path: string, manifest: string): Promise<number>;
  /** The body of an answer. */
  get(path: string): Promise<string>;
  close(): void;
}

export function openKubeCalls(kube: KubeApiserver): KubeCalls {
  const agent = new Agent({ keepAlive: true, maxSockets: maxWritesInFlight, ca: readFileSync(kube.caFile) });
  const authorization = `Bearer ${kube.tokenFor('admin')}`;

  async function send(method: string, path: string, manifest = '') {
    const call = request(`${kube.url}${path}`, {
      agent,
      method,
      headers: { authorization, 'content-type': 'application/apply-patch+yaml' },
      signal: AbortSignal.timeout(writeTimeoutMs),
    });
    call.end(manifest);
    // node:events cannot know which event brings what.
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    const answeredAt = monotonicMs();
    let body = '';
    for await (const chunk of response) body += chunk;
    const { statusCode = 0 } = response;
    if (statusCode !== 200 && statusCode !== 201)
      throw new Error(`the API server answered ${statusCode} to ${method} ${path}: ${body}`);
    return { answeredAt, body };
  }

  return {
    apply: async (path, manifest) =>
      (await send('PATCH', `${path}?fieldManager=bench&force=true`, manifest)).answeredAt,
    get: async (path) => (await send('GET', path)).body,
    close: () => agent.destroy(),
  };
}

/** Writes the objects 0 … `count` − 1, several at a time. */
export async function writeAll(count: number, write: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await write(index);
  };
  await Promise.all(Array.from({ length: maxWritesInFlight }, worker));
}

/**
 * Starts etcd and kube-apiserver with the CRD. Edits are server-side applies over TLS connections
 * that are kept.
 */
export async function startKubeObjects(): Promise<KubeObjects> {
  const kube = await startKubeApiserver();
  const calls = openKubeCalls(kube);

  async function apply(index: number, userLimit: number): Promise<number> {
    return calls.apply(`${objectsPath}/${objectName(index)}`, objectManifest(index, userLimit));
  }

  // Parsed boundary: what the API server answers to a GET.
  const read = async (path: string): Promise<unknown> => JSON.parse(await calls.get(`${objectsPath}${path}`));

  async function close(): Promise<void> {
    calls.close();
    await kube.stop();
  }

  try {
    await kube.apply(readFileSync(crdFile, 'utf8'));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    label: 'kube-apiserver',
    settings: {
      XDS_SOURCE: 'kubernetes',
      KUBECONFIG: kube.kubeconfigFile,
      XDS_ANY_DOMAIN_NAMESPACES: '*',
      XDS_LEASE_NAMESPACE: 'default',
    },
    fill: (count, userLimit) => writeAll(count, (index) => apply(index, userLimit)),
    edit: apply,
    async editUntilReady(index, userLimit) {
      const doneAt = await apply(index, userLimit);
      const path = `/${objectName(index)}`;
      await awaitUntil(async () => isReady((await read(path)) as LiveObject), {
        what: `${path} to be ready`,
        timeoutMs: readyTimeoutMs,
        everyMs: readyPollMs,
      });
      return monotonicMs() - doneAt;
    },
    async countReady() {
      const { items } = (await read('')) as { readonly items: readonly LiveObject[] };
      return items.filter(isReady).length;
    },
    async editWithKubectl(index, userLimit) {
      const { code, stderr } = await kube.kubectl(['apply', '-f', '-'], {
        input: objectManifest(index, userLimit),
      });
      if (code !== 0) throw new Error(`kubectl apply failed: ${stderr}`);
      return monotonicMs();
    },
    close,
  };
}
