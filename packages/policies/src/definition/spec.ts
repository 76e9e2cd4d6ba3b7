import type { Field, Fields, specFields } from './fields.ts';

/** An attribute of callers or requests, the value of a header, or an attribute from a claim. */
type LimitBy<Name extends string> = Name | { readonly header: string } | { readonly claim: string };

type Row = Pick<Field, 'kind'>;

/** The value of a field by its row. */
type ValueOf<F extends Row> = F extends { kind: 'text' }
  ? string
  : F extends { kind: 'texts' }
    ? readonly string[]
    : F extends { kind: 'choice'; values: readonly (infer V)[] }
      ? V
      : F extends { kind: 'choices'; values: readonly (infer V)[] }
        ? readonly V[]
        : F extends { kind: 'flag' }
          ? boolean
          : F extends { kind: 'count' }
            ? number
            : F extends { kind: 'part'; fields: infer P extends Fields }
              ? PartOf<P>
              : F extends { kind: 'parts'; fields: infer P extends Fields }
                ? readonly PartOf<P>[]
                : F extends { kind: 'parts by name'; fields: infer P extends Fields }
                  ? ReadonlyMap<string, PartOf<P>>
                  : F extends { kind: 'attributes'; values: readonly (infer V extends string)[] }
                    ? readonly LimitBy<V>[]
                    : never;

/** A part of an AccessPolicy as its table describes it. */
export type PartOf<P extends Fields> = {
  readonly [Name in keyof P as P[Name] extends { required: true } ? Name : never]: ValueOf<P[Name]>;
} & {
  readonly [Name in keyof P as P[Name] extends { required: true } ? never : Name]?:
    | ValueOf<P[Name]>
    | undefined;
};

/** The spec of an AccessPolicy. */
export type PolicySpec = PartOf<typeof specFields>;

export type AccessSpec = NonNullable<PolicySpec['access']>;
export type RuleSpec = NonNullable<PolicySpec['rules']>[number];
export type LimitSpec = NonNullable<PolicySpec['limits']>[number];

/** An AccessPolicy whose spec has the right form. */
export interface PolicyResource {
  readonly namespace: string;
  readonly name: string;
  readonly spec: PolicySpec;
}
