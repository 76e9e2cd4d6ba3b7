import { parseDuration } from '@tollgate/kit/time';
import { errors } from '../../errors.ts';
import type { Action, ActionSet } from '../../http/actions.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { readText } from '../../ui/form.ts';
import { planFields, readPlan } from '../../ui/limit-fields.ts';
import { displayName, isBanned, isSsoUser, readUser, type User, userPlan } from './user.ts';

/** Actions on one user. */
const userActions: readonly Action<User>[] = [
  {
    path: 'plan',
    button: 'Set plan and limit',
    question: (user) =>
      `The plan and limit of ${displayName(user)} apply to new tokens, and at the gateway at once.`,
    fields: (user) => planFields('this user', currentPlan(user)),
    run: async ({ visit, subject: user, form }) => {
      const { plan = null, limit = null } = readPlan(form);
      await change(visit, user, { app_metadata: { plan, limit } });
      return 'The plan and limit are set.';
    },
  },
  {
    path: 'sign-out',
    button: 'Sign out',
    question: (user) =>
      `All sessions of ${displayName(user)} end. The user has to sign in again on every device.`,
    run: async ({ visit, subject: { id } }) => {
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
    question: (user) => `${displayName(user)} gets an email with a link to set a new password.`,
    isOffered: (user) => user.email !== '' && !isSsoUser(user),
    run: async ({ visit, subject: { id, email } }) => {
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
    question: (user) => `${displayName(user)} cannot sign in until then, and requests are denied at once.`,
    fields: () =>
      field({
        name: 'duration',
        label: 'Duration',
        value: '24h',
        hint: 'Such as 30m, 24h or 8760h.',
        isRequired: true,
      }),
    isOffered: (user, nowMs) => !isBanned(user, nowMs),
    run: async ({ visit, subject: user, form }) => {
      const duration = readText(form, 'duration');
      if ((parseDuration(duration) ?? 0) <= 0)
        throw errors.invalid_value({
          message: 'The duration is longer than 0s, such as 30m, 24h or 8760h. Nothing was changed.',
        });
      await change(visit, user, { ban_duration: duration });
      return 'The user is banned.';
    },
  },
  {
    path: 'unban',
    button: 'Lift the ban',
    question: (user) => `${displayName(user)} can sign in again.`,
    isOffered: isBanned,
    run: async ({ visit, subject: user }) => {
      await change(visit, user, { ban_duration: 'none' });
      return 'The ban is lifted.';
    },
  },
  {
    path: 'delete',
    button: 'Delete',
    isDangerous: true,
    question: (user) =>
      `${displayName(user)} is deleted with all sessions, identities and factors. This cannot be undone.`,
    confirmation: displayName,
    run: async ({ visit, subject: user }) => {
      const parameters = { path: { user_id: user.id } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}', { params: parameters, body: { should_soft_delete: false } }),
      );
      return { notice: `${displayName(user)} is deleted.`, path: '/users' };
    },
  },
  {
    path: 'sessions/:item/end',
    button: 'End the session',
    isDangerous: true,
    question: (user) => `This session of ${displayName(user)} ends. Other devices stay signed in.`,
    run: async ({ visit, subject: { id }, item }) => {
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
    question: (user) => `${displayName(user)} can sign in without this factor, and enroll a new one.`,
    run: async ({ visit, subject: { id }, item }) => {
      const parameters = { path: { user_id: id, factor_id: item } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}/factors/{factor_id}', { params: parameters }),
      );
      return 'The factor is removed.';
    },
  },
  {
    path: 'passkeys/:item/remove',
    button: 'Remove the passkey',
    isDangerous: true,
    question: (user) =>
      `${displayName(user)} cannot sign in with this passkey any more, and gets an email that says so.`,
    run: async ({ visit, subject: { id }, item }) => {
      const parameters = { path: { user_id: id, passkey_id: item } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/users/{user_id}/passkeys/{passkey_id}', { params: parameters }),
      );
      return 'The passkey is removed.';
    },
  },
];

export const userActionSet: ActionSet<User> = {
  route: '/users/:id',
  permission: 'users/change',
  read: readUser,
  name: displayName,
  path: ({ id }) => `/users/${id}`,
  actions: userActions,
};

interface UserChange {
  readonly ban_duration?: string;
  readonly app_metadata?: Record<string, unknown>;
}

async function change(visit: Visit, { id }: User, body: UserChange): Promise<void> {
  const params = { path: { user_id: id } };
  await visit.services.auth((client) => client.PUT('/admin/users/{user_id}', { params, body }));
}

/** Parsed boundary: app_metadata has what administrators write. */
function currentPlan(user: User): Parameters<typeof planFields>[1] {
  const { requests_per_unit: requests, unit } = (user.app_metadata.limit ?? {}) as Readonly<
    Record<string, unknown>
  >;
  return {
    plan: userPlan(user),
    ...(typeof requests === 'number' && {
      limit: { requests_per_unit: requests, unit: typeof unit === 'string' ? unit : 'minute' },
    }),
  };
}
