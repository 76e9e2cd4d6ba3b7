import openapiTS, { astToString } from 'openapi-typescript';

interface Operation {
  readonly tags?: readonly string[];
}

/** An OpenAPI document, as far as it is read here. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/**
 * The operations of an OpenAPI document as TypeScript types, which openapi-fetch reads.
 *
 * @param isIncluded by the tag of an operation
 */
export async function renderTypes(
  document: Document,
  isIncluded: (tag: string) => boolean = () => true,
): Promise<string> {
  const paths = Object.entries(document.paths).flatMap(([path, methods]) => {
    const kept = Object.entries(methods).filter(([, { tags = [] }]) => tags.some(isIncluded));
    return kept.length === 0 ? [] : [[path, Object.fromEntries(kept)]];
  });
  // Parsed boundary: the library checks that it is an OpenAPI document.
  const reduced = { ...document, paths: Object.fromEntries(paths) } as unknown as Parameters<
    typeof openapiTS
  >[0];
  return astToString(await openapiTS(reduced));
}
