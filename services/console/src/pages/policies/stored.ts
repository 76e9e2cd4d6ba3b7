import { type Html, html } from '@tollgate/kit/html';
import type { Manifest } from '@tollgate/policies/files/trial';
import { isMapping } from '@tollgate/rules/resource-fields';
import { parse } from '@tollgate/yaml/documents';
import type { Visit } from '../../http/visit.ts';
import { ServiceError } from '../../services/session-clients.ts';
import { type ObjectName, objectPath, readObject, type Schemas } from './page.ts';

/** An object of the xDS server, decoded. */
export interface StoredObject {
  readonly text: string;
  readonly manifest: Manifest;
  /** File and number of its document; undefined in Kubernetes. */
  readonly file: string | undefined;
}

/** Whether the person may read objects, and there is a server that has them. */
export function canReadObjects(visit: Visit): boolean {
  return visit.context.settings.xdsUrl !== '' && visit.can('policies');
}

/** The page of an access policy by `namespace/name`, for a person who may see it. */
export function policyLink(visit: Visit, policy: string): Html {
  const [namespace = '', name] = policy.split('/');
  if (name === undefined || !canReadObjects(visit)) return html`${policy}`;
  return html`<a href="${objectPath({ kind: 'AccessPolicy', namespace, name })}">${policy}</a>`;
}

/** The newest version of an object; undefined without one. @throws ServiceError */
export async function readNewest(visit: Visit, name: ObjectName): Promise<StoredObject | undefined> {
  const detail = await findObject(visit, name);
  return detail && toStored(detail.manifest, detail.file);
}

/** The version in force of an object; undefined without one. @throws ServiceError */
export async function readInForce(visit: Visit, name: ObjectName): Promise<StoredObject | undefined> {
  const detail = await findObject(visit, name);
  if (detail?.inForce === undefined) return undefined;
  const { inForce: generation, file } = detail;
  if (generation === detail.generation) return toStored(detail.manifest, file);
  return toStored(await readManifest(visit, { ...name, generation }), file);
}

/** The manifest of a version. @throws ServiceError */
export async function readManifest(
  visit: Visit,
  { kind, namespace, name, generation }: ObjectName & { readonly generation: number },
): Promise<string> {
  const path = { kind, namespace, name, generation };
  const { manifest } = await visit.services.xds((client) =>
    client.GET('/v1/objects/{kind}/{namespace}/{name}/versions/{generation}', { params: { path } }),
  );
  return manifest;
}

async function findObject(
  visit: Visit,
  { kind, namespace, name }: ObjectName,
): Promise<Schemas['ObjectDetail'] | undefined> {
  try {
    return await readObject(visit, { kind, namespace, name });
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return undefined;
    throw error;
  }
}

function toStored(text: string, file: string | undefined): StoredObject | undefined {
  const parsed = parse({ text, linesBefore: 0 });
  const value = parsed.ok ? parsed.documents[0]?.value : undefined;
  return isMapping(value) ? { text, manifest: value, file } : undefined;
}
