/** The looks of a button; everything a page may want to change is a custom property or a part. */
export const css: string = `
:host{display:inline-flex;position:relative;vertical-align:middle;--a:var(--like-accent,light-dark(#e11d56,#ff5d8a))}
:host([hidden]){display:none}
.button{position:relative;display:inline-flex;align-items:center;gap:var(--like-gap,.4em);
min-height:var(--like-target,2.5em);padding:var(--like-padding,0 .7em);border-radius:var(--like-radius,99em);
color:var(--like-color,inherit);background:var(--like-background,none)}
button{all:unset;position:absolute;z-index:1;inset:0;border-radius:inherit;cursor:pointer;
touch-action:manipulation;-webkit-tap-highlight-color:#0000}
button:focus-visible{outline:2px solid var(--a);outline-offset:1px}
button:disabled{cursor:default}
:disabled~*{opacity:.5}
.liked{color:var(--like-color-liked,var(--like-color,inherit))}
.icon{position:relative;display:grid;width:var(--like-size,1.25em);height:var(--like-size,1.25em);transition:transform .12s}
button:active~.icon{transform:scale(.85)}
svg,::slotted(svg){width:100%;height:100%;overflow:visible}
path{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.liked .icon{color:var(--a)}
.liked path{fill:currentColor}
.count{display:inline-flex;font-variant-numeric:tabular-nums}
.icon::before,.icon::after{content:"";position:absolute;inset:-35%;border-radius:50%;border:2px solid var(--a);opacity:0}
.icon::after{inset:auto -20% -15% auto;width:.3em;height:.3em;border-color:var(--like-pending,#e8930c);background:Canvas}
.pending .icon::after{opacity:1;animation:p 1s infinite alternate}
.pending path{fill-opacity:.35;stroke-dasharray:2}
.tapped .icon{animation:h .45s}
.tapped .icon::before{animation:r .5s}
.message{position:absolute;z-index:9;top:calc(100% + .3em);left:0;width:max-content;max-width:17em;
padding:.5em .75em;border-radius:.6em;font-size:.8125rem;font-weight:500;line-height:1.35;color:Canvas;background:CanvasText;pointer-events:none}
.message:empty{opacity:0}
@keyframes h{0%{transform:scale(.5)}45%{transform:scale(1.28)}75%{transform:scale(.94)}}
@keyframes r{0%{opacity:.7;transform:scale(.35)}to{opacity:0;transform:scale(1.25)}}
@keyframes p{to{opacity:.4}}
@media (prefers-reduced-motion:reduce){*,::before,::after{animation:none!important;transition:none!important}}`;
