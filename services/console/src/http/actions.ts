import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import type { Permission } from '../scopes.ts';
import { field } from '../ui/fields.ts';
import { readText } from '../ui/form.ts';
import { confirmation as confirmationForm } from '../ui/messages.ts';
import type { Column } from '../ui/table.ts';
import type { Area, View } from './routes.ts';
import type { Visit } from './visit.ts';

/** Something that a person does to a subject, such as a user, with a page that asks first. */
export interface Action<Subject> {
  /** Part of the path after that of the subject; `:item` is the id of a part, such as a session. */
  readonly path: string;
  readonly button: string;
  readonly isDangerous?: boolean;
  /** Says what will happen, in a sentence. */
  readonly question: (subject: Subject) => string;
  readonly fields?: (subject: Subject, visit: Visit) => Html;
  /** A text that the person has to type, such as the name of what is deleted. */
  readonly confirmation?: (subject: Subject) => string;
  /** Whether it has a button on the page of the subject now. Those of parts have links instead. */
  readonly isOffered?: (subject: Subject, nowMs: number) => boolean;
  readonly run: (target: Target<Subject>) => Promise<Outcome>;
}

interface Target<Subject> {
  readonly visit: Visit;
  readonly subject: Subject;
  /** The id of a part of the subject. */
  readonly item: string;
  readonly form: URLSearchParams;
}

/**
 * A sentence that says what was done, on the page of the subject or on another one; or a page that
 * is the response itself, for what is shown only once.
 */
type Outcome = string | { readonly notice: string; readonly path: string } | View;

/** The actions of a kind of subjects. */
export interface ActionSet<Subject> {
  /** Path of a subject as a route: `/users/:id`. */
  readonly route: string;
  readonly permission: Permission;
  /** The subject of the path. @throws ServiceError */
  readonly read: (visit: Visit) => Promise<Subject>;
  /** Undefined for what does not exist yet. */
  readonly name: (subject: Subject) => string | undefined;
  /** Path of the page of the subject. */
  readonly path: (subject: Subject) => string;
  /** Their order is that of the buttons. */
  readonly actions: readonly Action<Subject>[];
}

/** The only action of a list: it creates a subject, such as a key. */
export function creationSet(
  list: string,
  permission: Permission,
  action: Pick<Action<undefined>, 'button' | 'question' | 'fields' | 'run'>,
): ActionSet<undefined> {
  return {
    route: list,
    permission,
    read: () => Promise.resolve(undefined),
    name: () => undefined,
    path: () => list,
    actions: [{ path: 'new', ...action }],
  };
}

/** The pages that ask before the actions, and the routes that do them. */
export function actionRoutes<Subject>(set: ActionSet<Subject>): Pick<Area, 'pages' | 'actions'> {
  const { route, permission, actions } = set;
  const routes = actions.map((action) => ({ action, path: `${route}/${action.path}`, permission }));
  return {
    pages: routes.map(({ action, ...rest }) => ({
      ...rest,
      view: (visit) => viewAction(visit, set, action),
    })),
    actions: routes.map(({ action, ...rest }) => ({
      ...rest,
      submit: (visit, form) => submitAction(visit, form, { set, action }),
    })),
  };
}

async function viewAction<Subject>(
  visit: Visit,
  { read, name, path }: ActionSet<Subject>,
  { button, question, isDangerous = false, fields, confirmation }: Action<Subject>,
): Promise<View> {
  const subject = await read(visit);
  const subjectName = name(subject);
  return {
    title: subjectName === undefined ? button : `${button}: ${subjectName}`,
    content: confirmationForm({
      ...{ question: question(subject), action: visit.url.pathname, button, isDangerous },
      fields: html`${visit.formFields()}${fields?.(subject, visit)}${confirmation && confirmationField(confirmation(subject))}`,
      back: path(subject),
    }),
  };
}

const confirmationName = 'confirmed';

function confirmationField(text: string): Html {
  return field({ name: confirmationName, label: `Type ${text} to confirm`, isRequired: true });
}

/** @throws AppError `not_confirmed`; errors of the action */
async function submitAction<Subject>(
  visit: Visit,
  form: URLSearchParams,
  { set, action }: { readonly set: ActionSet<Subject>; readonly action: Action<Subject> },
): Promise<string | View> {
  const subject = await set.read(visit);
  const { confirmation } = action;
  if (confirmation !== undefined && readText(form, confirmationName) !== confirmation(subject))
    throw errors.not_confirmed();
  const outcome = await action.run({ visit, subject, item: visit.param('item'), form });
  if (typeof outcome === 'object' && 'content' in outcome) return outcome;
  const { notice, path } =
    typeof outcome === 'string' ? { notice: outcome, path: set.path(subject) } : outcome;
  visit.notify(notice);
  return path;
}

/** Buttons for the actions of a subject, for those who may do them. */
export function actionButtons<Subject>(
  { permission, actions, path }: ActionSet<Subject>,
  subject: Subject,
  visit: Visit,
): Html | undefined {
  if (!visit.can(permission)) return undefined;
  const offered = actions.filter(
    ({ path: end, isOffered }) => !end.includes(':item') && isOffered?.(subject, visit.nowMs) !== false,
  );
  return html`<div class="actions">${offered.map(({ path: end, button, isDangerous }) =>
    linkButton(`${path(subject)}/${end}`, button, isDangerous),
  )}</div>`;
}

/** A column that leads to actions on a part of a subject, for those who may do them. */
export function actionColumn<Row>(
  visit: Visit,
  permission: Permission,
  links: (row: Row) => Readonly<Record<string, string>>,
): readonly Column<Row>[] {
  if (!visit.can(permission)) return [];
  const cell = (row: Row) =>
    html`<div class="actions">${Object.entries(links(row)).map(([text, path]) =>
      linkButton(path, text),
    )}</div>`;
  return [{ title: 'Action', cell }];
}

/** A link to a page that asks before it changes something. */
function linkButton(path: string, text: string, isDangerous = false): Html {
  return html`<a class="button${isDangerous && ' danger'}" href="${path}">${text}</a>`;
}
