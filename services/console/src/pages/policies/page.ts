import type { XdsSchemas as Schemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../../errors.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { tabs } from '../../ui/layout.ts';
import { emptyState } from '../../ui/messages.ts';
import { withInput } from '../../ui/shell.ts';
import { command } from '../../ui/text.ts';

export type { Schemas };

const pages = [
  { title: 'Objects', path: '/policies' },
  { title: 'Try', path: '/policies/try' },
];

/** A page of the area. */
export function policiesPage({ url }: Visit, title: string, content: Html): View {
  return { title, content: html`${tabs('Policies', pages, url.pathname)}${content}` };
}

/** A view that needs an xDS server. */
export function withXds(view: (visit: Visit) => Promise<View>): (visit: Visit) => Promise<View> {
  return async (visit) => {
    if (visit.context.settings.xdsUrl !== '') return view(visit);
    const text = 'The console knows no xDS server, which has policies and limits. Set its URL:';
    return { title: 'Policies', content: emptyState(text, 'CONSOLE_XDS_URL=http://xds:8090') };
  };
}

type Kind = Schemas['ObjectSummary']['kind'];

/** Kinds of objects. */
export const kinds: readonly Kind[] = ['AccessPolicy', 'RateLimitConfig'];

export function toKind(text: string | undefined): Kind | undefined {
  return kinds.find((kind) => kind === text);
}

export interface ObjectName {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

/** The object of the path. @throws AppError `page_not_found` */
export function readName(visit: Visit): ObjectName {
  const kind = toKind(visit.param('kind'));
  if (kind === undefined) throw errors.page_not_found();
  return { kind, namespace: visit.param('namespace'), name: visit.param('name') };
}

/** The object that the query names; undefined without one. */
export function findQueriedName(visit: Visit): ObjectName | undefined {
  const [kind, namespace, name] = [
    toKind(visit.query('kind')),
    visit.query('namespace'),
    visit.query('name'),
  ];
  return kind && namespace && name ? { kind, namespace, name } : undefined;
}

export function objectPath({ kind, namespace, name }: ObjectName): string {
  return `/policies/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** The object with its findings, versions and acknowledgements. @throws ServiceError */
export function readObject(visit: Visit, path: ObjectName): Promise<Schemas['ObjectDetail']> {
  return visit.services.xds((client) =>
    client.GET('/v1/objects/{kind}/{namespace}/{name}', { params: { path } }),
  );
}

/**
 * A manifest as a person puts it into force. The console cannot: it has no rights in the cluster,
 * and in a folder no access to its files.
 */
export function howToApply(manifest: string, file: string | undefined): Html {
  return file === undefined
    ? html`<p>With your rights in the cluster:</p>${command(applyCommand(manifest))}`
    : html`<p>In the folder of the xDS server, replace ${file} (file, and number of its document) by this text.</p>${command(manifest)}`;
}

export function applyCommand(manifest: string): string {
  return withInput('kubectl apply --server-side -f -', manifest);
}
