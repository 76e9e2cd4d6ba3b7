import { type Document, renderTypes } from '../../packages/admin-clients/scripts/render-types.ts';
import { counterApiDocument } from '../../services/ratelimit/src/operator-api/open-api.ts';
import { adminApiDocument } from '../../services/xds/src/operator-api/open-api.ts';
import { renderOpenApi } from './render.ts';

const folder = 'packages/admin-clients/src/generated';

/** Tags of operations that programs of administrators send, besides the administration. */
const tags: readonly string[] = ['Service', 'OAuth server'];

/** Types of the operations that administrators send, by path. */
export async function renderClientTypes(): Promise<ReadonlyMap<string, string>> {
  // Parsed boundary: all are OpenAPI documents.
  const auth = JSON.parse(await renderOpenApi()) as Document;
  const isIncluded = (tag: string) => tags.includes(tag) || tag.startsWith('Administration');
  return new Map([
    [`${folder}/auth.d.ts`, await renderTypes(auth, isIncluded)],
    [`${folder}/ratelimit.d.ts`, await renderTypes(counterApiDocument() as Document)],
    [`${folder}/xds.d.ts`, await renderTypes(adminApiDocument() as Document)],
  ]);
}
