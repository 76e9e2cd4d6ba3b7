import { isMapping } from '@tollgate/rules/resource-fields';
import { objectKinds, type PolicyDocument } from './documents.ts';
import { type Manifest, nameOf } from './trial.ts';

type DocumentKind = keyof typeof objectKinds;

/** An AccessPolicy or a RateLimitConfig of a file. */
export interface PolicyObject {
  readonly kind: (typeof objectKinds)[DocumentKind];
  /** `default` where the manifest has none. */
  readonly namespace: string;
  /** Empty where the manifest has none. */
  readonly name: string;
  readonly manifest: Manifest;
}

/** The objects among the documents of files; rules of limiters, routes and tests are none. */
export function findObjects(documents: readonly PolicyDocument[]): readonly PolicyObject[] {
  return documents.flatMap(({ kind, value }) =>
    isObjectKind(kind) && isMapping(value)
      ? [{ kind: objectKinds[kind], ...nameOf(value), manifest: value }]
      : [],
  );
}

function isObjectKind(kind: PolicyDocument['kind']): kind is DocumentKind {
  return Object.hasOwn(objectKinds, kind);
}
