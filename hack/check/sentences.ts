/** A block, or lines that follow each other. */
const comment = /\/\*\*?([\s\S]*?)\*\/|((?:^[ \t]*\/\/ .*\n?)+)/gm;

const noSubject = /^(?:Of|Those|That of|The same|What)\b/;

const prepositions =
  'as|by|with|without|for|from|in|on|at|before|after|until|per|like|within|between|under|to';
const phrase = new RegExp(`^(?:${prepositions})\\b`, 'i');
/** A clause that begins a sentence, or is all of it: "Before a request is sent". */
const clause = /^(?:before|after|until)\b/i;
const relativeClause =
  /,? (?:that|which|who|whose|when|where|while|if|because|since|so that|as|unless|than)\b[^,]*/g;
const addition =
  /, (?:also|and|or|in|with|without|for|by|such|instead|including|sorted|possibly|whatever|even|but|then)\b[^,]*/g;
const verb =
  /\b(?:is|are|was|were|be|has|have|had|does|do|did|can|cannot|could|may|might|must|will|would|should)\b/;
/** A word that is no preposition, then an article: "Without a file the server stops". */
const secondNoun = new RegExp(
  ` (?!(?:${prepositions}|of|than|and|or) )\\S+ (?:the|a|an|its|their|this|these|no|all|each) `,
);
/** Longer ones may have a verb that only a dictionary knows. */
const maxPhraseWords = 9;

/** Comments that begin in the middle of a sentence, without subject or verb, as `path:line: …`. */
export function findFragments(path: string, text: string): string[] {
  return [...text.matchAll(comment)].flatMap(({ index, 1: block, 2: lines = '' }) => {
    const words = (block ?? lines).replace(/^[ \t]*(?:\*|\/\/) ?/gm, '').trim();
    const [sentence = ''] = words.replace(/\s+/g, ' ').split(/(?<=[.;])(?:\s|$)/);
    if (!noSubject.test(sentence) && !(/(?:^|\/)src\//.test(path) && isPhrase(sentence))) return [];
    const line = text.slice(0, index).split('\n').length;
    return [`${path}:${line}: a comment that is not a sentence: ${sentence}`];
  });
}

/** "In base32", "By kind and language, which differ": a preposition without a main clause. */
function isPhrase(sentence: string): boolean {
  const [preposition = ''] = sentence.split(' ');
  const rest = sentence.slice(preposition.length).replace(/[.;]$/, '');
  const main = preposition + rest.replace(relativeClause, '').replace(addition, '');
  return (
    phrase.test(main) &&
    main.split(' ').length <= maxPhraseWords &&
    !/[,:](?: |$)/.test(main) &&
    (clause.test(main) || !verb.test(main)) &&
    !secondNoun.test(main)
  );
}
