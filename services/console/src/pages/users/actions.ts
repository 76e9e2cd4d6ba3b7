import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { displayName, isBanned, type User } from './user.ts';

/** An action of a person on a user, with a page that asks first. */
export interface UserAction {
  /** Part of the path after that of the user; `:item` is the id of a session or factor. */
  readonly path: string;
  readonly button: string;
  readonly isDangerous?: boolean;
  /** Says what will happen, in a sentence. */
  readonly question: (name: string) => string;
  readonly fields?: (user: User) => Html;
  /** Whether it has a button on the page of the user. */
  readonly isOffered: (user: User, nowMs: number) => boolean;
  /** Does it. Returns a sentence that says so. */
  readonly run: (target: Target) => Promise<string>;
}

interface Target {
  readonly visit: Visit;
  readonly user: User;
  /** The id of a session or factor. */
  readonly item: string;
  readonly form: URLSearchParams;
}

/** All actions, in the order of the buttons. */
export const userActions: readonly UserAction[] = [
  {
    path: 'plan',
    button: 'Set plan and limit',
    question: (name) => `The plan and limit of ${name} apply to new tokens, and at the gateway at once.`,
    fields: planFields,
    isOffered: () => true,
    run: async ({ visit, user, form }) => {
      await change(visit, user, { app_metadata: readPlan(form) });
      return 'The plan and limit are set.';
    },
  },
  {
    path: 'sign-out',
    button: 'Sign out',
    question: (name) => `All sessions of ${name} end. The user has to sign in again on every device.`,
    isOffered: () => true,
    run: async ({ visit, user: { id } }) => {
      const parameters = { path: { user_id: id } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}/sessions', { params: parameters }),
      );
      return 'All sessions have ended.';
    },
  },
  {
    path: 'recovery',
    button: 'Send recovery email',
    question: (name) => `${name} gets an email with a link to set a new password.`,
    isOffered: ({ email }) => email !== '',
    run: async ({ visit, user: { id, email } }) => {
      const parameters = { path: { user_id: id } };
      await visit.services.auth((client) =>
        client.POST('/admin/users/{user_id}/recovery', { params: parameters }),
      );
      return `The email is on its way to ${email}.`;
    },
  },
  {
    path: 'ban',
    button: 'Ban',
    isDangerous: true,
    question: (name) => `${name} cannot sign in until then, and requests are denied at once.`,
    fields: () =>
      field({
        name: 'duration',
        label: 'Duration',
        value: '24h',
        hint: 'Such as 30m, 24h or 8760h.',
        isRequired: true,
      }),
    isOffered: (user, nowMs) => !isBanned(user, nowMs),
    run: async ({ visit, user, form }) => {
      await change(visit, user, { ban_duration: form.get('duration') ?? '' });
      return 'The user is banned.';
    },
  },
  {
    path: 'unban',
    button: 'Lift the ban',
    question: (name) => `${name} can sign in again.`,
    isOffered: isBanned,
    run: async ({ visit, user }) => {
      await change(visit, user, { ban_duration: 'none' });
      return 'The ban is lifted.';
    },
  },
  {
    path: 'delete',
    button: 'Delete',
    isDangerous: true,
    question: (name) =>
      `${name} is deleted with all sessions, identities and factors. This cannot be undone.`,
    fields: (user) =>
      field({
        name: 'confirmed',
        label: `Type ${displayName(user)} to confirm`,
        isRequired: true,
      }),
    isOffered: () => true,
    run: async ({ visit, user, form }) => {
      if (form.get('confirmed')?.trim() !== displayName(user)) throw errors.not_confirmed();
      const parameters = { path: { user_id: user.id } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}', { params: parameters, body: { should_soft_delete: false } }),
      );
      return `${displayName(user)} is deleted.`;
    },
  },
  {
    path: 'sessions/:item/end',
    button: 'End the session',
    isDangerous: true,
    question: (name) => `This session of ${name} ends. Other devices stay signed in.`,
    isOffered: () => false,
    run: async ({ visit, user: { id }, item }) => {
      const parameters = { path: { user_id: id, session_id: item } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}/sessions/{session_id}', { params: parameters }),
      );
      return 'The session has ended.';
    },
  },
  {
    path: 'factors/:item/remove',
    button: 'Remove the factor',
    isDangerous: true,
    question: (name) => `${name} can sign in without this factor, and enroll a new one.`,
    isOffered: () => false,
    run: async ({ visit, user: { id }, item }) => {
      const parameters = { path: { user_id: id, factor_id: item } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}/factors/{factor_id}', { params: parameters }),
      );
      return 'The factor is removed.';
    },
  },
];

interface UserChange {
  readonly ban_duration?: string;
  readonly app_metadata?: Record<string, unknown>;
}

async function change(visit: Visit, { id }: User, body: UserChange): Promise<void> {
  const params = { path: { user_id: id } };
  await visit.services.auth((client) => client.PUT('/admin/users/{user_id}', { params, body }));
}

/** The number of a limit is a uint32, as in Envoy's RateLimitOverride. */
const maxRequests = 4_294_967_295;

/** Units of the `limit` claim. */
const units = { second: 'per second', minute: 'per minute', hour: 'per hour', day: 'per day' };

function planFields({ app_metadata: { plan, limit } }: User): Html {
  // Parsed boundary: app_metadata has what administrators write.
  const { requests_per_unit: requests, unit } = (limit ?? {}) as Readonly<Record<string, unknown>>;
  return html`${field({
    name: 'plan',
    label: 'Plan',
    value: typeof plan === 'string' ? plan : '',
    hint: 'Empty: the default plan.',
  })}${field({
    name: 'requests',
    label: 'Limit of this user, in requests',
    type: 'number',
    value: typeof requests === 'number' ? String(requests) : '',
    hint: 'Empty: the limit of the plan.',
  })}${field({
    name: 'unit',
    label: 'Unit',
    value: typeof unit === 'string' ? unit : 'minute',
    choices: units,
  })}`;
}

/** `null` removes a member. @throws AppError `invalid_value` */
function readPlan(form: URLSearchParams): Record<string, unknown> {
  const plan = form.get('plan')?.trim() || null;
  const text = form.get('requests')?.trim() ?? '';
  if (text === '') return { plan, limit: null };
  const requests = Number(text);
  if (!Number.isInteger(requests) || requests < 1 || requests > maxRequests)
    throw errors.invalid_value({
      message: `The limit is a whole number of requests from 1 to ${maxRequests}. Nothing was changed.`,
    });
  return { plan, limit: { requests_per_unit: requests, unit: form.get('unit') } };
}
