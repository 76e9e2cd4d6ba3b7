import { denialStatuses } from '@tollgate/policies/decide/access';
import { type Static, Type } from 'typebox';

/** An object without other members than those of its schema. */
const closed = { additionalProperties: false };

const text = (description: string) => Type.String({ minLength: 1, maxLength: 1024, description });
const texts = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), { maxItems: 64, description });
const values = (description: string) =>
  Type.Record(Type.String(), Type.String({ maxLength: 8192 }), { description });
const count = (description: string, minimum = 0) =>
  Type.Integer({ minimum, maximum: 4_294_967_295, description });

const units = ['Second', 'Minute', 'Hour', 'Day', 'Week', 'Month', 'Year'] as const;

/** Who sends a request. */
export const callerSchema = Type.Object(
  {
    user: Type.Optional(text('Id of the user, or of the owner of the API key.')),
    apiKey: Type.Optional(text('Id of the API key.')),
    client: Type.Optional(text('Id of the machine client, or of the OAuth client that has the session.')),
    role: Type.Optional(text('Role. Default authenticated, as new users have it.')),
    plan: Type.Optional(text('Plan. Default free.')),
    scopes: Type.Optional(texts('Scopes of the token or key.')),
    organization: Type.Optional(text('Id of the active organization.')),
    organizationRole: Type.Optional(text('Role in the organization.')),
    session: Type.Optional(text('Id of the session. Default: one for each user.')),
    assurance: Type.Optional(
      Type.Enum(['AAL1', 'AAL2', 'AAL3'], { description: 'Assurance level of the session. Default AAL1.' }),
    ),
    anonymous: Type.Optional(Type.Boolean({ description: 'Whether the user is anonymous. Default false.' })),
    issuer: Type.Optional(text('Name of the issuer of the token. Default tollgate.')),
    audiences: Type.Optional(texts('Claim aud of the token.')),
    claims: Type.Optional(values('Attributes that claims of the routes file add.')),
    limit: Type.Optional(
      Type.Object(
        { requests: count('Requests in each window.', 1), per: Type.Enum([...units]) },
        { ...closed, description: 'The limit of the caller itself, which replaces the number of a policy.' },
      ),
    ),
  },
  { ...closed, description: 'Who sends a request: one of user, apiKey and client, and attributes.' },
);

const limitStates = ['ok', 'exceeded', 'unlimited', 'not_counted', 'on_trial', 'no_rule'] as const;

const limit = Type.Object(
  {
    remaining: Type.Optional(count('Requests that are left afterwards.')),
    requests: Type.Optional(count('Requests in each window.')),
    state: Type.Optional(
      Type.Enum([...limitStates], {
        description: 'not_counted: the request lacks an attribute that the limit counts by.',
      }),
    ),
  },
  closed,
);

const expectation = Type.Object(
  {
    allowed: Type.Optional(Type.Boolean({ description: 'Whether each of the requests may pass.' })),
    status: Type.Optional(
      Type.Integer({
        minimum: 200,
        maximum: 599,
        description: 'Status of each response; 200 if it may pass.',
      }),
    ),
    reason: Type.Optional(
      Type.Enum(Object.keys(denialStatuses) as (keyof typeof denialStatuses)[], {
        description: 'Error code of each response.',
      }),
    ),
    policy: Type.Optional(text('namespace/name of the policy that decides.')),
    rule: Type.Optional(text('Paths of the rule that decides; default where none matches.')),
    remaining: Type.Optional(
      count('Requests that the tightest of all limits leaves after the last of the requests.'),
    ),
    limits: Type.Optional(
      Type.Record(Type.String(), limit, {
        description: 'Limits that apply, by name, after the last of the requests.',
      }),
    ),
    onlyLimits: Type.Optional(
      Type.Boolean({ description: 'Whether no limits but these apply. Default false.' }),
    ),
  },
  { ...closed, description: 'The expected decision. At least one member.', minProperties: 1 },
);

const step = {
  request: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z-]+ https?://[^/\\s]+(/\\S*)?$',
      maxLength: 8192,
      description: 'Method and URL: GET https://api.example.com/orders/1',
    }),
  ),
  as: Type.Optional(text('Name of the caller. Default: that of the test, else no credential.')),
  headers: Type.Optional(values('Headers of the request.')),
  address: Type.Optional(text('IP address of the client. Default 192.0.2.1.')),
  policy: Type.Optional(
    text('namespace/name of the policy, for policies of routes. Default: that of the host, or the only one.'),
  ),
  times: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100_000, description: 'Number of equal requests. Default 1.' }),
  ),
  after: Type.Optional(text('Time that passes before, such as 30s or 1h.')),
  at: Type.Optional(text('Time of the request in RFC 3339; time does not go back.')),
  expect: Type.Optional(expectation),
};

/** A file of tests. Its JSON schema is generated from this. */
export const testFile = Type.Object(
  {
    policies: Type.Array(text('File or folder, relative to this file.'), {
      ...{ minItems: 1, maxItems: 64 },
      description: 'Policies, limits and the routes file that are tested together.',
    }),
    callers: Type.Optional(Type.Record(Type.String(), callerSchema, { description: 'Callers by name.' })),
    tests: Type.Array(
      Type.Object(
        {
          name: text('Name that results have.'),
          ...step,
          steps: Type.Optional(
            Type.Array(Type.Object(step, closed), {
              ...{ minItems: 1, maxItems: 1000 },
              description:
                'Requests in their order, instead of a single one. Counters start at 0 in each test.',
            }),
          ),
        },
        closed,
      ),
      { minItems: 1, maxItems: 10_000, description: 'Tests. Each has counters of its own.' },
    ),
  },
  closed,
);

type TestFile = Static<typeof testFile>;
export type CallerSpec = Static<typeof callerSchema>;
export type Expectation = Static<typeof expectation>;
export type TestSpec = TestFile['tests'][number];
export type StepSpec = NonNullable<TestSpec['steps']>[number];
