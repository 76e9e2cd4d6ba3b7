import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { startKubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { objectManifest, objectName } from './bench-object.ts';
import { monotonicMs } from './monotonic-ms.ts';
import type { ObjectSource } from './object-source.ts';

/** Objects of a real API server. */
export interface KubeObjects extends ObjectSource {
  /** Changes one object with `kubectl apply`; answers when kubectl had ended, by `monotonicMs`. */
  editWithKubectl(index: number, userLimit: number): Promise<number>;
}

const crdFile = join(import.meta.dirname, '../../../crds/ratelimitconfigs.yaml');
const objectsPath = '/apis/ratelimit.tollgate.dev/v1alpha1/namespaces/default/ratelimitconfigs';

/** Writes at the same time; more do not make the API server faster on two cores. */
export const maxWritesInFlight = 16;
const writeTimeoutMs = 30_000;

/** Starts etcd and kube-apiserver with the CRD. Edits are server-side applies over TLS connections that are kept. */
export async function startKubeObjects(): Promise<KubeObjects> {
  const kube = await startKubeApiserver();
  const agent = new Agent({ keepAlive: true, maxSockets: maxWritesInFlight, ca: readFileSync(kube.caFile) });
  const authorization = `Bearer ${kube.tokenFor('admin')}`;

  async function apply(index: number, userLimit: number): Promise<number> {
    const call = request(`${kube.url}${objectsPath}/${objectName(index)}?fieldManager=bench&force=true`, {
      agent,
      method: 'PATCH',
      headers: { authorization, 'content-type': 'application/apply-patch+yaml' },
      signal: AbortSignal.timeout(writeTimeoutMs),
    });
    call.end(objectManifest(index, userLimit));
    // node:events cannot know which event brings what.
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    const answeredAt = monotonicMs();
    let body = '';
    for await (const chunk of response) body += chunk;
    const { statusCode = 0 } = response;
    if (statusCode !== 200 && statusCode !== 201)
      throw new Error(`the API server answered ${statusCode} to an apply: ${body}`);
    return answeredAt;
  }

  async function close(): Promise<void> {
    agent.destroy();
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
    settings: { XDS_SOURCE: 'kubernetes', KUBECONFIG: kube.kubeconfigFile, XDS_LEASE_NAMESPACE: 'default' },
    async fill(count, userLimit) {
      let next = 0;
      const worker = async (): Promise<void> => {
        for (let index = next++; index < count; index = next++) await apply(index, userLimit);
      };
      await Promise.all(Array.from({ length: maxWritesInFlight }, worker));
    },
    edit: apply,
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
