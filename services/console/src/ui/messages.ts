import { type Html, html } from '@tollgate/kit/html';
import { command } from './text.ts';

export interface Problem {
  readonly title: string;
  /** Says what is wrong, and what to do. */
  readonly text: string | Html;
  /** A command to paste that helps. */
  readonly command?: string | undefined;
}

/** An error with its remedy. */
export function problem({ title, text, command: line }: Problem): Html {
  return html`<div class="problem" role="alert"><h2>${title}</h2><p>${text}</p>${line !== undefined && command(line)}</div>`;
}

/** Says what to do next, where there is nothing to show yet. */
export function emptyState(text: string, line?: string): Html {
  return html`<div class="empty"><p>${text}</p>${line !== undefined && command(line)}</div>`;
}

export interface Confirmation {
  /** Says what will happen, in a sentence. */
  readonly question: string;
  /** Where the form is sent. */
  readonly action: string;
  readonly button: string;
  readonly isDangerous?: boolean;
  /** Fields of the form, with the CSRF token. */
  readonly fields: Html;
  /** Where "Cancel" leads. */
  readonly back: string;
}

/** The content of a page that asks before an action, instead of a dialog. */
export function confirmation({
  question,
  action,
  button,
  fields,
  back,
  isDangerous = false,
}: Confirmation): Html {
  return html`<section class="card stack"><p>${question}</p>
<form method="post" action="${action}" class="stack">${fields}
<div class="actions"><button class="${isDangerous ? 'danger' : 'primary'}">${button}</button> <a class="button" href="${back}">Cancel</a></div>
</form></section>`;
}
