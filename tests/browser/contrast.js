// Returns the contrast of each visible text below an element with what is behind it, as WCAG computes it.
root => {
  const numbers = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map(part => part / 255).map(part => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (walk.currentNode.data.trim() && element.getClientRects().length > 0) {
      const pair = [luminance(numbers(getComputedStyle(element).color)), luminance(behind(element))];
      found.push({ text: walk.currentNode.data, ratio: (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) });
    }
  }
  return found;
}
