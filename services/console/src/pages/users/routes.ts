import { html } from '@tollgate/kit/html';
import type { Area, View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { confirmation } from '../../ui/messages.ts';
import { type UserAction, userActions } from './actions.ts';
import { viewUser } from './detail.ts';
import { viewUsers } from './list.ts';
import { displayName, readUser } from './user.ts';

/** Users and what they have. */
export const usersArea: Area = {
  name: 'users',
  title: 'Users',
  path: '/users',
  group: 'Access',
  permission: 'users',
  pages: [
    { path: '/users', permission: 'users', view: viewUsers },
    { path: '/users/:id', permission: 'users', view: viewUser },
    ...userActions.map((action) => ({
      path: pathOf(action),
      permission: 'users/change' as const,
      view: (visit: Visit) => viewAction(visit, action),
    })),
  ],
  actions: userActions.map((action) => ({
    path: pathOf(action),
    permission: 'users/change' as const,
    submit: (visit, form) => submitAction(visit, action, form),
  })),
};

function pathOf({ path }: UserAction): string {
  return `/users/:id/${path}`;
}

/** The page that asks before an action. */
async function viewAction(visit: Visit, action: UserAction): Promise<View> {
  const user = await readUser(visit);
  return {
    title: `${action.button}: ${displayName(user)}`,
    content: confirmation({
      question: action.question(displayName(user)),
      action: visit.url.pathname,
      button: action.button,
      isDangerous: action.isDangerous ?? false,
      fields: html`${visit.formFields()}${action.fields?.(user)}`,
      back: `/users/${user.id}`,
    }),
  };
}

/** Leads back to the user, or to the list when there is none any more. */
async function submitAction(visit: Visit, action: UserAction, form: URLSearchParams): Promise<string> {
  const user = await readUser(visit);
  visit.notify(await action.run({ visit, user, item: visit.param('item'), form }));
  return action.path === 'delete' ? '/users' : `/users/${user.id}`;
}
