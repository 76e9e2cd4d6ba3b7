import type { ComponentName } from '../../http/open-api-components.ts';
import type { AdminScope } from '../../sessions/admin-scopes.ts';

/** A component, a list of one, or one of several. */
export type ResponseBody =
  | ComponentName
  | readonly [ComponentName]
  | { readonly oneOf: readonly ComponentName[] };

/** Whose token an operation requires, and the scope that an API key needs. Neither: none. */
type Caller =
  | { readonly caller?: 'user'; readonly scope?: undefined }
  | { readonly caller: 'admin'; readonly scope: AdminScope };

/** Members of the document in addition to the schemas of a route. */
export type Operation = {
  /** Name of the operation in generated clients, unique. */
  readonly id: string;
  readonly summary: string;
  /** Content type of a body without a schema. */
  readonly bodyType?: string;
  /** Members of the body in its example. Default: required ones, else the first one. */
  readonly example?: readonly string[];
  /** Whether it needs a CAPTCHA token, if CAPTCHAs are enabled. */
  readonly captcha?: true;
} & Caller &
  (
    | { readonly status: 204 | 302 | 303; readonly response?: undefined }
    /** Status: default 200. */
    | { readonly status?: 200 | 201; readonly response: ResponseBody }
  );

/** Operations by `METHOD /path`, with parameters in braces. */
export type Operations = Readonly<Record<string, Operation>>;

export const forUser = { caller: 'user' } as const;
export const forAdmin = (scope: AdminScope) => ({ caller: 'admin', scope }) as const;
