import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { type Column, table } from '../../ui/table.ts';
import { quantity, time } from '../../ui/text.ts';
import { type Issuer, issuerPath, issuerText, keyState, readIssuers, whereToEdit } from './issuer.ts';

/** All issuers of the file, which bounds their number. */
export async function viewIssuers(visit: Visit): Promise<View> {
  const { file, issuers } = await readIssuers(visit);
  return {
    title: 'Token issuers',
    content: table({
      caption: 'Other issuers whose tokens the gateway accepts',
      rows: issuers,
      url: visit.url,
      empty: emptyState(
        file === undefined
          ? 'The gateway accepts only tokens of this auth server. Set SVC_EXT_AUTHZ_ROUTES_FILE to a file with issuers. This says what an issuer publishes:'
          : `The gateway accepts only tokens of this auth server. Add issuers to ${file}, which is reloaded when it changes. This says what an issuer publishes:`,
        'tollgate-auth issuers check https://idp.example.com/realms/shop',
      ),
      ...(file !== undefined && { note: whereToEdit(file) }),
      rowId: ({ name }) => `issuer-${name}`,
      columns: columns(visit.nowMs),
    }),
  };
}

function keyCount({ keys }: Issuer): Html {
  return quantity(keys.usable.length, keys.usable.length === 1 ? 'key' : 'keys');
}

function columns(nowMs: number): readonly Column<Issuer>[] {
  return [
    { title: 'Name', cell: (issuer) => html`<a href="${issuerPath(issuer)}">${issuer.name}</a>` },
    { title: 'Issuer', cell: issuerText },
    { title: 'Audiences', cell: ({ audiences }) => audiences.join(', ') },
    { title: 'Keys', cell: (issuer) => html`${keyState(issuer)} ${keyCount(issuer)}` },
    { title: 'Loaded', cell: ({ keys }) => time(keys.loaded_at, nowMs) ?? 'never' },
    { title: 'Tokens accepted', isNumber: true, cell: ({ tokens }) => tokens.accepted },
    { title: 'Tokens rejected', isNumber: true, cell: ({ tokens }) => tokens.rejected },
    { title: 'Last use', cell: (issuer) => time(issuer.last_used_at, nowMs) ?? 'never' },
  ];
}
