import { limitFields, nameBounds, type TextBounds } from '@tollgate/rules/fields';
import { resourceTexts } from '@tollgate/rules/values';
import { pathMatchTypes } from '../match/path-pattern.ts';

/** One field of an AccessPolicy; its name is its key in the table of its part. */
interface Row {
  /** The documentation has this text. */
  readonly description: string;
  readonly required?: true;
}

interface TextRow extends Row {
  readonly kind: 'text';
  readonly bounds: TextBounds;
}

/** A list of texts, each once. */
interface TextsRow extends Row {
  readonly kind: 'texts';
  readonly bounds: TextBounds;
  readonly maxItems: number;
  /** An empty list has a meaning. */
  readonly mayBeEmpty?: true;
}

interface ChoiceRow extends Row {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** A list of choices, each once. */
interface ChoicesRow extends Row {
  readonly kind: 'choices';
  readonly values: readonly string[];
}

interface FlagRow extends Row {
  readonly kind: 'flag';
}

interface CountRow extends Row {
  readonly kind: 'count';
  readonly min: number;
  readonly max: number;
}

interface PartRow extends Row {
  readonly kind: 'part';
  readonly fields: Fields;
}

interface PartsRow extends Row {
  readonly kind: 'parts';
  readonly fields: Fields;
  readonly maxItems: number;
  /** Bound of the items of one of its lists in all parts together. */
  readonly total?: { readonly field: string; readonly maxItems: number };
}

/** Parts by a name that the object chooses. */
interface PartsByNameRow extends Row {
  readonly kind: 'parts by name';
  readonly fields: Fields;
  readonly names: TextBounds;
  readonly maxItems: number;
}

/** A list of which each item is one of `values`, or an object that names a header or a claim. */
interface AttributesRow extends Row {
  readonly kind: 'attributes';
  readonly values: readonly string[];
}

export type Field =
  | TextRow
  | TextsRow
  | ChoiceRow
  | ChoicesRow
  | FlagRow
  | CountRow
  | PartRow
  | PartsRow
  | PartsByNameRow
  | AttributesRow;

export type Fields = Readonly<Record<string, Field>>;

const hostBounds: TextBounds = {
  min: 1,
  max: 253,
  pattern: /^\*$|^(?:\*\.)?[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/,
  form: 'a host name in lower case without a port, *.example.com, or *',
};

/** A header can have it as a value, and so can a token. */
const wordBounds: TextBounds = {
  min: 1,
  max: 255,
  pattern: /^[!-~](?:[ -~]*[!-~])?$/,
  form: 'printable ASCII without spaces around it',
};

const scopeBounds: TextBounds = {
  min: 1,
  max: 255,
  // RFC 6749 §3.3.
  pattern: /^[!#-[\]-~]+$/,
  form: 'a scope: printable ASCII without spaces, quotes and backslashes',
};

const headerBounds: TextBounds = {
  min: 1,
  max: 256,
  pattern: /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/,
  form: 'the name of a header',
};

/** A pattern would stand for more than one plan. */
const planBounds: TextBounds = {
  min: 1,
  max: 255,
  pattern: /^[!-)+-~](?:[ -)+-~]*[!-)+-~])?$/,
  form: 'printable ASCII without * and without spaces around it',
};

const objectNameBounds: TextBounds = {
  min: 1,
  max: 253,
  pattern: /^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/,
  form: 'the name of an object',
};

/** Bounds of Gateway API. */
const matchBounds = { pathLength: 1024, valueLength: 4096, matches: 64, values: 16, total: 1024 } as const;

/** The limiter counts as many per request at most. */
const maxLimits = 16;

const accessTypes = ['Public', 'Authenticated', 'Denied'] as const;

/** Kinds of callers by the credential that they have. */
export const credentialKinds = ['User', 'ApiKey', 'Client'] as const;

/** Attributes that a limit counts by, with the keys of descriptor entries. */
export const limitAttributes = {
  User: 'user_id',
  ApiKey: 'key_id',
  Client: 'client_id',
  Organization: 'org_id',
  Session: 'session_id',
  Plan: 'plan',
  Role: 'role',
  Address: 'remote_address',
  Method: 'method',
  Rule: 'path',
} as const;

export const accessFields = {
  type: {
    kind: 'choice',
    values: accessTypes,
    description:
      'Public: everyone. Authenticated (default): callers with a valid credential. Denied: no request.',
  },
  roles: {
    kind: 'texts',
    bounds: wordBounds,
    maxItems: 64,
    description: 'The caller has one of these roles.',
  },
  scopes: {
    kind: 'texts',
    bounds: scopeBounds,
    maxItems: 64,
    description: 'The token has all of these scopes.',
  },
  plans: {
    kind: 'texts',
    bounds: wordBounds,
    maxItems: 64,
    description: 'The caller has one of these plans.',
  },
  assurance: {
    kind: 'choice',
    values: ['AAL1', 'AAL2', 'AAL3'],
    description: 'Assurance level that the session has at least. Default AAL1.',
  },
  anonymousUsers: {
    kind: 'flag',
    description: 'Whether anonymous users, and tokens without a user, may call. Default false.',
  },
  credentials: {
    kind: 'choices',
    values: credentialKinds,
    description: 'Kinds of callers that may call. Default: all.',
  },
  audiences: {
    kind: 'texts',
    bounds: { min: 1, max: 1024 },
    maxItems: 64,
    description: 'The token is for one of these audiences (its claim aud).',
  },
  issuers: {
    kind: 'texts',
    bounds: wordBounds,
    maxItems: 64,
    description: 'Issuers whose tokens are accepted: tollgate, and names of trusted issuers. Default: all.',
  },
  browser: {
    kind: 'choice',
    values: ['None', 'Redirect'],
    description:
      'Redirect: a browser without a session goes to the sign-in page, and a cookie identifies the user afterwards. Default None.',
  },
  resource: {
    kind: 'part',
    description:
      'OAuth clients, such as those of MCP, discover how to get tokens for this resource (RFC 9728).',
    fields: {
      url: {
        kind: 'text',
        bounds: { min: 1, max: 1024 },
        description:
          'Its identifier, which is the audience of its tokens. Default: https:// and the host of the policy, if it is one.',
      },
      name: { kind: 'text', bounds: { min: 1, max: 255 }, description: 'Name that clients may show.' },
      scopes: {
        kind: 'texts',
        bounds: scopeBounds,
        maxItems: 64,
        description: 'Scopes that clients may ask for.',
      },
    },
  },
} as const satisfies Fields;

const valueMatchFields = {
  type: {
    kind: 'choice',
    values: ['Exact', 'RegularExpression'],
    description: 'How the value is compared. Default Exact.',
  },
  name: { kind: 'text', bounds: headerBounds, required: true, description: 'Name.' },
  value: {
    kind: 'text',
    bounds: { min: 1, max: matchBounds.valueLength },
    required: true,
    description: 'Value, or a regular expression (RE2) of the whole value.',
  },
} as const satisfies Fields;

/** A match of a rule. */
export const matchFields = {
  path: {
    kind: 'part',
    description: 'Default: every path.',
    fields: {
      type: {
        kind: 'choice',
        values: pathMatchTypes,
        description:
          'Exact compares the whole path, PathPrefix (default) whole segments, RegularExpression the whole path with RE2.',
      },
      value: {
        kind: 'text',
        bounds: { min: 1, max: matchBounds.pathLength },
        required: true,
        description: 'Path, or regular expression.',
      },
    },
  },
  methods: {
    kind: 'texts',
    bounds: { min: 1, max: 32 },
    maxItems: 16,
    description: 'Methods, any of them; GET includes HEAD. Default: all.',
  },
  headers: {
    kind: 'parts',
    fields: valueMatchFields,
    maxItems: matchBounds.values,
    description: 'Headers that all match. Their names ignore the case.',
  },
  queryParams: {
    kind: 'parts',
    fields: valueMatchFields,
    maxItems: matchBounds.values,
    description: 'Query parameters that all match. Of a repeated one, the first counts.',
  },
} as const satisfies Fields;

const ruleFields = {
  matches: {
    kind: 'parts',
    fields: matchFields,
    maxItems: matchBounds.matches,
    required: true,
    description: 'Requests that the rule is for: any of the matches.',
  },
  access: { kind: 'part', fields: accessFields, description: 'Replaces the access of the policy.' },
  limits: {
    kind: 'texts',
    bounds: nameBounds,
    maxItems: maxLimits,
    mayBeEmpty: true,
    description: 'Names of the limits that apply; [] for none. Default: all limits without only.',
  },
} as const satisfies Fields;

const { requestsPerUnit, unit, period, unlimited, algorithm, burst, timeZone, lease, onStoreFailure } =
  limitFields;

const requestsField = {
  kind: 'count',
  min: 0,
  max: requestsPerUnit.max,
  description: 'Requests in each window; 0 denies all.',
} as const;

const limitRows = {
  name: {
    kind: 'text',
    bounds: nameBounds,
    required: true,
    description: 'Unique in the policy. Metrics, responses and `explain` have it.',
  },
  only: { kind: 'flag', description: 'The limit applies only where a rule names it.' },
  by: {
    kind: 'attributes',
    values: Object.keys(limitAttributes) as (keyof typeof limitAttributes)[], // of exactly these keys
    required: true,
    description: 'Each combination of these attributes has a counter of its own.',
  },
  requests: requestsField,
  per: { kind: 'choice', values: resourceTexts(unit.values), description: 'Length of the window.' },
  period: { kind: 'text', bounds: period.bounds, description: period.description },
  unlimited: { kind: 'flag', description: unlimited.description },
  plans: {
    kind: 'parts by name',
    names: planBounds,
    maxItems: 32,
    description: 'Replaces `requests` for callers of a plan.',
    fields: { requests: requestsField, unlimited: { kind: 'flag', description: unlimited.description } },
  },
  algorithm: { kind: 'choice', values: resourceTexts(algorithm.values), description: algorithm.description },
  burst: { kind: 'count', min: burst.min, max: burst.max, description: burst.description },
  timeZone: { kind: 'text', bounds: timeZone.bounds, description: timeZone.description },
  lease: { kind: 'text', bounds: lease.bounds, description: lease.description },
  onStoreFailure: {
    kind: 'choice',
    values: resourceTexts(onStoreFailure.values),
    description: onStoreFailure.description,
  },
  mode: {
    kind: 'choice',
    values: ['Enforce', 'Shadow', 'Trial'],
    description:
      'Shadow and Trial never deny. Shadow counts as Enforce does; Trial has counters of its own, and limiters report what it would refuse. Default Enforce.',
  },
} as const satisfies Fields;

const accessPart = { kind: 'part', fields: accessFields } as const;
const limitsPart = { kind: 'parts', fields: limitRows, maxItems: maxLimits } as const;

export const specFields = {
  targetRefs: {
    kind: 'parts',
    maxItems: 16,
    description: 'Routes and Gateways of Gateway API that the policy is for; or hosts.',
    fields: {
      group: {
        kind: 'choice',
        values: ['gateway.networking.k8s.io'],
        required: true,
        description: 'Group of the object.',
      },
      kind: {
        kind: 'choice',
        values: ['HTTPRoute', 'GRPCRoute', 'Gateway'],
        required: true,
        description: 'Kind of the object.',
      },
      name: { kind: 'text', bounds: objectNameBounds, required: true, description: 'Name of the object.' },
      sectionName: {
        kind: 'text',
        bounds: objectNameBounds,
        description: 'Name of a rule of the route, or of a listener of the Gateway.',
      },
    },
  },
  hosts: {
    kind: 'texts',
    bounds: hostBounds,
    maxItems: 64,
    description: 'Hosts that the policy is for, where the gateway has no objects of Gateway API.',
  },
  access: { ...accessPart, description: 'Who may call. Default: callers with a valid credential.' },
  rules: {
    kind: 'parts',
    fields: ruleFields,
    maxItems: 256,
    total: { field: 'matches', maxItems: matchBounds.total },
    description: `Parts of the target, of which the first that matches applies. All together have at most ${matchBounds.total} matches.`,
  },
  limits: { ...limitsPart, description: 'How much each caller may call.' },
  defaults: {
    kind: 'part',
    description: 'For a Gateway: another name of access and limits, which policies of routes replace.',
    fields: {
      access: { ...accessPart, description: 'Who may call.' },
      limits: { ...limitsPart, description: 'How much each caller may call.' },
    },
  },
  overrides: {
    kind: 'part',
    description: 'For a Gateway: holds for all of its routes in addition to their own policies.',
    fields: {
      access: { ...accessPart, description: 'Who may call at most. Default: everyone.' },
      limits: { ...limitsPart, description: 'Counted in addition to the limits of the route.' },
    },
  },
} as const satisfies Fields;
