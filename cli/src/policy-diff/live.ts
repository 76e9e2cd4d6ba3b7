import { RequestError, unwrap, type XdsClient } from '@tollgate/admin-clients/clients';
import { readDocuments, type Source } from '@tollgate/policies/files/documents';
import { findObjects, type PolicyObject } from '@tollgate/policies/files/objects';

type Reference = Pick<PolicyObject, 'kind' | 'namespace' | 'name'>;

/** The versions in force of all objects in the files; there is none for a new object. */
export async function readLive(client: XdsClient, files: readonly Source[]): Promise<readonly Source[]> {
  const sources: Source[] = [];
  for (const reference of files.flatMap(listObjects)) {
    const text = await readInForce(client, reference);
    const path = `${reference.kind} ${reference.namespace}/${reference.name} in force`;
    if (text !== undefined) sources.push({ path, text, isNamed: true });
  }
  return sources;
}

function listObjects(file: Source): readonly Reference[] {
  return findObjects(readDocuments(file).documents)
    .filter(({ name }) => name !== '')
    .map(({ kind, namespace, name }) => ({ kind, namespace, name }));
}

/** The manifest of the generation in force. Undefined if there is none. */
async function readInForce(client: XdsClient, path: Reference): Promise<string | undefined> {
  const detail = await unwrap(
    client.GET('/v1/objects/{kind}/{namespace}/{name}', { params: { path } }),
  ).catch((error: unknown) => {
    if (error instanceof RequestError && error.status === 404) return undefined;
    throw error;
  });
  const { inForce: generation } = detail ?? {};
  if (detail === undefined || generation === undefined) return undefined;
  if (generation === detail.generation) return detail.manifest;
  const url = '/v1/objects/{kind}/{namespace}/{name}/versions/{generation}';
  const version = await unwrap(client.GET(url, { params: { path: { ...path, generation } } }));
  return version.manifest;
}
